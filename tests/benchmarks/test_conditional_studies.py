"""The benchmark with a conditional space, small: who comes first, what is kept, what is shown."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from optuna.samplers import RandomSampler
from scipy import stats

from benchmarks import _model_selection_studies as studies
from benchmarks import conditional_studies as command
from benchmarks._studies import OURS, new_study, suggested
from metaprior.lab.environments import MODEL_SELECTION, model_selection_tasks

PLAN = studies.Plan(prior=3, past=3, past_trials=12, tasks=2, trials=4, budget="fast")


@settings(max_examples=60, deadline=None)
@given(arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.floats(0, 1)))
def test_greedy_order_is_best_at_every_step(regret):
    order = studies.greedy_order(regret)
    assert sorted(order) == list(range(len(regret)))
    for k in range(len(order)):
        reached = [
            np.min(regret[[*order[:k], other]], axis=0).sum()
            for other in range(len(regret))
            if other not in order[:k]
        ]
        assert np.min(regret[order[: k + 1]], axis=0).sum() == min(reached)


def test_draw_keeps_past_unseen_and_tuning_tasks_apart():
    plan = replace(PLAN, past=16, tasks=10)
    seen, unseen = studies.draw(plan)
    names = [task.name for task in seen + unseen]
    assert (len(seen), len(unseen), len(set(names))) == (16, 10, 26)
    assert names != [task.name for each in studies.draw(replace(plan, prior=4)) for task in each]
    tuning = studies.draw(replace(plan, prior=studies.TUNING, past=10, tasks=6))
    reported = {task.name for task in model_selection_tasks()}
    assert not reported & {task.name for each in tuning for task in each}
    with pytest.raises(ValueError, match="there are 16 in all; ask for fewer"):
        studies.draw(replace(plan, prior=studies.TUNING))


def finished(file):
    """What a file says, without the times."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{key: line[key] for key in line if key != "seconds"} for line in lines]


def test_evaluate_goes_on_where_it_stopped(tmp_path):
    studies.evaluate(PLAN, "TPESampler", tmp_path)
    file = tmp_path / "prior-3" / "TPESampler.jsonl"
    text, first = file.read_text(), finished(file)
    assert [line.get("task") for line in first[1:]] == [t.name for t in studies.draw(PLAN)[1]]
    assert all(len(line["regret"]) == 4 for line in first[1:])
    studies.evaluate(PLAN, "TPESampler", tmp_path)
    assert file.read_text() == text
    file.write_text(text[: len(text) - 40])  # stopped while it wrote the last line
    studies.evaluate(PLAN, "TPESampler", tmp_path)
    assert finished(file) == first
    with pytest.raises(ValueError, match="give another folder with --out"):
        studies.evaluate(replace(PLAN, trials=5), "TPESampler", tmp_path)


def test_past_best_is_ordered_and_tried_first(tmp_path):
    past, unseen = studies.draw(PLAN)
    studies.prepare(PLAN, tmp_path)
    known = studies.past_studies(tmp_path / "prior-3" / "past.db", past)
    assert [len(study.rows()) for study in known] == 3 * [12]
    best = [max(study.rows(), key=lambda row: row[1])[0] for study in known]
    order = studies.ordered(known, past)
    assert sorted(map(str, order)) == sorted(map(str, best))
    # Told of every past task, the first one is the best on average over their tables.
    regret = [
        np.mean([(task.best - task.evaluate(each)) / (task.best - task.median) for task in past])
        for each in order
    ]
    assert regret[0] == min(regret)
    outcome = studies.run_study(unseen[0], RandomSampler(seed=0), 3, order)
    lowest = [
        (unseen[0].best - max(unseen[0].evaluate(each) for each in order[: t + 1]))
        / (unseen[0].best - unseen[0].median)
        for t in range(3)
    ]
    np.testing.assert_allclose(outcome["regret"], lowest)


def test_suggested_flat_suggests_everything_and_uses_what_is_active():
    study = new_study(RandomSampler(seed=0))
    for _ in range(20):
        trial = study.ask()
        point = suggested(trial, MODEL_SELECTION, flat=True)
        assert set(trial.params) == set(MODEL_SELECTION.names)
        assert model_selection_tasks()[0].evaluate(point) <= 1
        bare = study.ask()
        assert suggested(bare, MODEL_SELECTION) == bare.params


def test_tables_pair_the_samplers_by_prior(tmp_path):
    """Three priors of two tasks, and a study that only one sampler has finished."""
    rng = np.random.default_rng(0)
    regret = rng.uniform(size=(2, 3, 2, 3))
    for prior, (i, arm) in itertools.product(range(3), enumerate((OURS, "random"))):
        lines = [{"plan": {"prior": prior}, "arm": arm}, {"learned_in": 1.0}]
        for task in range(2):
            curve = regret[i, prior, task].tolist()
            lines.append({"task": f"{task}", "regret": curve, "seconds": [0.1]})
        if arm == OURS:
            lines.append({"task": "2", "regret": [9.0, 9.0, 9.0], "seconds": [0.1]})
        file = tmp_path / f"prior-{prior}" / f"{arm}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = command.by_prior(command.read(tmp_path))
    np.testing.assert_allclose(found[OURS], regret[0].mean(axis=1))
    (_, _, first), (_, header, paired), (_, _, every) = command.tables(command.read(tmp_path))
    assert [row[0] for row in first] == [OURS, "random"]
    assert [row[0] for row in every] == ["1", "2", "3"]
    difference = (regret[1] - regret[0]).mean(axis=1)
    low, high = stats.t.interval(0.95, 2, difference.mean(axis=0), stats.sem(difference, axis=0))
    for column, t in (("t=1", 0), ("t=3", 2)):
        shown = paired[0][header.index(column)]
        assert shown == f"{difference[:, t].mean():+.2g} ± {(high - low)[t] / 2:.1g}"
    lower = int((difference.mean(axis=0) > 0).sum())
    assert paired[0][-2] == f"at {lower} of 3 trials"
    assert paired[0][-1] == f"at {int((low > 0).sum())}"
