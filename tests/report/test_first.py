"""The first queries: those of the optimiser, with numbers that follow from the prior."""

from dataclasses import replace

import numpy as np
import pytest

import metaprior as mp
from metaprior.data import Quantity
from metaprior.methods import FixedGP
from metaprior.report._first import first_queries, query_cards, usual_length
from metaprior.report._influence import (
    Influence,
    influence_bars,
    influence_of,
    valid_points,
)
from tests.report.made_up import SPACE, make_runs


def test_first_queries_are_those_that_the_optimiser_asks(bare_prior):
    found = first_queries(bare_prior)
    asked = mp.Optimizer(bare_prior, seed=0).ask(3, digits=3)
    assert [query.point for query in found] == asked
    mean, std = bare_prior.condition([], []).predict(asked)
    np.testing.assert_allclose([query.mean for query in found], mean)
    np.testing.assert_allclose([query.half_width for query in found], 1.959964 * std, rtol=1e-6)
    _, left = bare_prior.condition(asked[:1], mean[:1]).predict(asked[1:2])
    assert found[1].left == pytest.approx(1.959964 * left[0], rel=1e-6)
    assert found[2].left < found[2].half_width


def test_first_queries_beat_a_random_one_more_often_than_the_best_of_many(bare_prior):
    assert usual_length(bare_prior) == 15
    for query in first_queries(bare_prior):
        assert 0.5 < query.beats_one <= 1.0
        assert 0.0 <= query.beats_best < query.beats_one


def test_first_queries_of_a_prior_to_minimise_are_low(bare_prior):
    prior = replace(bare_prior, direction="minimize", quantity=Quantity("loss", "V"))
    queries = first_queries(prior)
    assert all(query.mean < query.usual and query.beats_one > 0.5 for query in queries)
    page = query_cards(queries, prior, list(SPACE.names))
    assert page.count('class="big"') == 3 and " V</strong>" in page


def test_query_cards_leave_out_dimensions_that_matter_least():
    space = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(12)})
    tasks = mp.Tasks.from_runs(make_runs(space, 3, 6), space=space)
    prior = mp.learn(tasks, method=FixedGP())
    page = query_cards(first_queries(prior), prior, list(reversed(space.names)))
    assert "x11" in page and ">x3<" not in page and "and 4 more dimensions" in page
    # A chance stays on one line with its sign.
    assert page.count("\N{NO-BREAK SPACE}% to beat") == 6 and " % to beat" not in page


def test_valid_points_follow_each_dimension():
    u = np.array([[0.5, 0.5, 0.0, 1.0, 0.4]])
    [point] = SPACE.decode(valid_points(SPACE, u))
    assert point["momentum"] == pytest.approx(0.495) and point["depth"] == 1
    assert point["width"] == 512 and point["activation"] == "tanh"


def test_influence_finds_the_dimension_that_the_runs_depend_on(bare_prior):
    found = influence_of(bare_prior)
    assert found is not None and found.main[0][0] == "learning_rate"
    totals = [total for _, _, total in found.main]
    assert totals == sorted(totals, reverse=True)
    assert all(0.0 <= alone <= total for _, alone, total in found.main)


def test_influence_bars_say_interactions_where_there_are_any():
    bars = influence_bars(Influence([("a", 0.5, 0.75), ("b", 0.25, 0.251)], [], 1.0))
    assert "50 %, 75 % with others" in bars and bars.count("with others") == 1
    assert ">25 %<" in bars


def test_influence_of_a_constant_mean_is_none():
    tasks = mp.Tasks.from_runs(make_runs(SPACE, 3, 6), space=SPACE)
    assert influence_of(mp.learn(tasks, method=FixedGP())) is None
