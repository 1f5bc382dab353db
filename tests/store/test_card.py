"""The model card: the findings, beside the baseline's scores."""

import re
from dataclasses import replace

import pytest

import metaprior as mp
from metaprior.belief import method_name
from metaprior.findings import NOTHING_MEASURED, Findings, HeldOutScores, PredictionScores, Replay
from metaprior.methods import Ensemble, FPacohMap, Guarded, settings_of
from metaprior.store import settings_in_words
from metaprior.store._card import model_card

FINDINGS = Findings(
    verdict="This prior is calibrated\nand saves about 7 evaluations.",
    held_out=HeldOutScores(
        learned=PredictionScores(calibration_error=0.0412, log_likelihood=1.236),
        baseline=PredictionScores(calibration_error=0.2, log_likelihood=-0.5),
    ),
    replay=Replay(saved_evaluations=7.34, saved_interval=(4.1, 10.26)),
    notes=("Only 2 past runs.",),
    interrupted=True,
)


@pytest.fixture(scope="module")
def prior():
    runs = [([[0.1], [0.5]], [0.0, 1.0]), ([[0.2]], [0.5])]
    space = mp.Space(**{"a `b`\nc": mp.Real(0.0, 1.0)})
    return mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())


def test_card_shows_what_was_measured(prior):
    card = model_card(replace(prior, findings=FINDINGS))
    for line in (
        "**This prior is calibrated and saves about 7 evaluations.**",
        "| calibration error (0 is perfect) | 0.041 | 0.200 |",
        "| log-likelihood (higher is better) | 1.24 | −0.50 |",
        "| | this prior | averaged GP |",
        "| evaluations saved per run | 7.3 (95 % interval 4.1 to 10.3) | – |",
        "- Only 2 past runs.",
        "## When not to use it",
    ):
        assert line in card.splitlines(), line
    assert "interrupted" in card and "the longest past run (2 points)" in card
    assert "vanilla" not in card


def test_card_says_which_points_of_past_runs_are_there(prior):
    assert "No point of a past run." in model_card(prior)
    runs = [([[0.1], [0.5], [0.7]], [0.0, 1.0, 0.5]), ([[0.2], [0.9]], [0.5, 0.1])]
    tasks = mp.Tasks.from_runs(runs, space=prior.space)
    keeping = mp.learn(tasks, method=mp.methods.RankWeightedGP(num_steps=1))
    assert "The arrays hold the points of 2 past runs" in model_card(keeping)
    with pytest.raises(ValueError, match="RankWeightedGP keeps points of past runs"):
        mp.learn(tasks, method=mp.methods.RankWeightedGP(), private=True)
    with pytest.raises(ValueError, match="Weighed keeps points of past runs"):
        mp.learn(tasks, method=mp.methods.Weighed(), private=True)


def test_card_says_that_nothing_was_measured(prior):
    card = model_card(prior)
    assert f"**{NOTHING_MEASURED.verdict}**" in card.splitlines()
    assert "On held-out runs" not in card and "## Notes" not in card
    assert "## Method: FixedGP" in card and "- `lengthscale`: 0.2" in card


def test_card_keeps_a_name_with_backticks_in_one_piece(prior):
    assert "- ``a `b` c``: Real(0.0, 1.0)" in model_card(prior).splitlines()


def test_card_names_methods_inside_a_method():
    method = Guarded(Ensemble(FPacohMap(kappa=0.125), 3))
    described = {"name": "Guarded", **settings_of(method)}
    assert method_name(described) == "Guarded(Ensemble(FPacohMap))"
    settings = settings_in_words(described)
    assert settings["FPacohMap.kappa"] == 0.125 and settings["Ensemble.members"] == 3
    assert not [value for value in settings.values() if isinstance(value, dict)]


def test_card_holds_no_markup_but_its_own():
    evil = "<script>alert(1)</script>"
    space = mp.Space(**{f"n{evil}": mp.Categorical([evil, "[a](javascript:alert(1))"])})
    runs = [([evil, evil], [0.0, 1.0]), ([evil], [0.5])]
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())
    findings = Findings(verdict=f"{evil}\x1b[31m", notes=(evil, "![x](http://tracker)"))
    card = model_card(replace(prior, findings=findings, trained_on={evil: evil}))
    spans = re.sub(r"(`+)[^`].*?[^`]\1", "", card)
    assert "<script" not in spans and "&lt;script&gt;" in spans
    assert "](" not in spans and "\x1b" not in card and "\\x1b[31m" in card
