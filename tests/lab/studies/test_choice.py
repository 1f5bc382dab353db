"""Choosing among the candidates of a search: records whose best candidate is known by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from metaprior.lab.studies._choice import MEASURES, choose
from metaprior.lab.studies._search import effort


def records(losses, num_steps=10):
    """One row per candidate and task; `losses` by measure, the others are all equal."""
    (count,) = {np.shape(values)[0] for values in losses.values()}
    (samples,) = {np.shape(values)[1] for values in losses.values()}
    parts = []
    for i in range(count):
        columns = {name: np.ones(samples) for name in MEASURES}
        columns |= {name: np.asarray(values, float)[i] for name, values in losses.items()}
        drawn = json.dumps({"kappa": i})
        parts.append(
            pd.DataFrame({"configuration": i, "num_steps": num_steps, "seed": 0, **columns}).assign(
                task=range(samples), diverged=False, drawn=drawn
            )
        )
    return pd.concat(parts, ignore_index=True)


def test_choice_by_study_takes_the_lowest_average_rank():
    """Clearly apart on every task: no ties. Likelihood counts as higher is better."""
    base = np.arange(8.0)
    found = records(
        {
            "simple_regret": [base + 3.0, base + 1.0, base + 2.0],
            "log_likelihood": [base, base + 5.0, base + 1.0],
        }
    )
    chosen = choose(found, "study")
    assert chosen["settings"] == {"kappa": 1}
    # Ranks of candidate 1: first by two measures, and equal to both others by three.
    assert chosen["scores"]["average_rank"] == pytest.approx((1 + 1 + 2 + 2 + 2) / 5)
    assert chosen["scores"]["tied"] == 1 and chosen["scores"]["log_likelihood"] == 8.5


def test_choice_by_study_breaks_ties_by_the_bad_tail():
    """Candidate 0 has the better mean, wins on 24 of 40 tasks, and is awful on six."""
    risky = [0.1] * 24 + [1.1] * 10 + [3.0] * 6
    found = records({"simple_regret": [risky, [1.0] * 40]})
    chosen = choose(found, "study")
    assert chosen["settings"] == {"kappa": 1} and chosen["scores"]["tied"] == 2
    clear = records({"simple_regret": [[0.1] * 34 + [3.0] * 6, [1.0] * 40]})
    assert choose(clear, "study")["settings"] == {"kappa": 0}  # the control


def test_choice_by_study_is_not_decided_by_last_digits():
    """Regrets of 1e-9 and 1e-12 beside one of 1 are equal; calibration decides."""
    regret = np.array([[1e-12] * 6, [1e-9] * 6, [1.0] * 6])
    error = np.array([[0.3] * 6, [0.1] * 6, [0.2] * 6]) + np.arange(6) / 100
    found = records({"simple_regret": regret, "calibration_error": error})
    assert choose(found, "study")["settings"] == {"kappa": 1}
    assert choose(found, "paper")["settings"] == {"kappa": 0}


def test_choice_by_paper_is_the_best_average_rank_of_two_measures():
    found = records(
        {
            "simple_regret": [[0.1, 0.1], [0.2, 0.2], [0.4, 0.2]],
            "inference_regret": [[0.9, 0.7], [0.1, 0.3], [0.5, 0.5]],
            "calibration_error": [[0.0, 0.0], [0.9, 0.9], [0.0, 0.0]],
        }
    )
    # Ranks by simple regret: 1, 2, 3; by inference regret: 3, 1, 2.
    chosen = choose(found, "paper")
    assert chosen["settings"] == {"kappa": 1}
    assert chosen["scores"]["average_rank"] == 1.5
    assert chosen["scores"]["simple_regret"] == pytest.approx(0.2)


def test_choice_drops_candidates_that_diverged_once():
    found = records({"simple_regret": [[0.1, 0.1], [0.2, 0.3]]})
    found.loc[0, "diverged"] = True
    chosen = choose(found, "study")
    assert chosen["settings"] == {"kappa": 1}
    assert chosen["searched"] == {"configurations": 2, "candidates": 2, "diverged": 1}


def test_search_effort_counts_trainings_once_and_runs_at_every_checkpoint():
    rows = [records({"simple_regret": np.ones((3, 4))}, steps) for steps in (10, 30)]
    rows = pd.concat([each.assign(seed=seed) for each in rows for seed in (1000, 1001)])
    assert effort(rows, 50) == {
        "seeds": [1000, 1001],
        "tasks": 4,
        "checkpoints": [10, 30],
        "training_steps": 3 * 2 * 30,
        "runs": 3 * 2 * 2 * 4,
        "queries": 3 * 2 * 2 * 4 * 50,
    }
