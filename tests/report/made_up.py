"""Runs over any space, and findings such as `learn` leaves."""

from typing import Any

import numpy as np

import metaprior as mp
from metaprior.findings import (
    Chosen,
    Example,
    Findings,
    HeldOutScores,
    PastTask,
    PredictionScores,
    Replay,
)

SPACE = mp.Space(
    learning_rate=mp.Real(1e-4, 1e-1, log=True),
    momentum=mp.Real(0.0, 0.99),
    depth=mp.Integer(1, 6),
    width=mp.Integer(8, 512, log=True),
    activation=mp.Categorical(["relu", "tanh", "a very long activation"]),
)
LINE = mp.Space(x=mp.Real(-1.0, 1.0))


def curve_from(start: float, end: float, count: int, rate: float) -> tuple[float, ...]:
    return tuple((end + (start - end) * np.exp(-rate * np.arange(count))).tolist())


def findings_for(runs: list[tuple[list[dict[str, Any]], list[float]]]) -> Findings:
    """Made-up numbers of the kind that are measured on held-out runs; the examples are real."""
    levels = np.linspace(0.05, 0.95, 19)
    return Findings(
        verdict="This prior is calibrated and saves about 7 evaluations.",
        held_out=HeldOutScores(
            folds=4,
            tasks=len(runs),
            contexts=(0, 1, 2, 5, 10, 15),
            levels=tuple(levels.tolist()),
            learned=PredictionScores(
                coverage=tuple((levels**1.15).tolist()),
                calibration_error=0.0412,
                calibration_interval=(0.031, 0.076),
                log_likelihood=1.234,
                log_likelihood_interval=(1.1, 1.4),
                log_likelihood_by_context=(0.4, 0.7, 0.9, 1.2, 1.5, 1.6),
                error_by_context=curve_from(0.4, 0.05, 6, 0.7),
            ),
            baseline=PredictionScores(
                coverage=tuple((levels**2.2).tolist()),
                calibration_error=0.173,
                calibration_interval=(0.12, 0.21),
                log_likelihood=-0.42,
                log_likelihood_interval=(-0.61, -0.2),
                log_likelihood_by_context=(-1.4, -1.1, -0.9, -0.4, 0.5, 0.9),
                error_by_context=curve_from(1.0, 0.2, 6, 0.4),
            ),
            spread=0.2,
        ),
        replay=Replay(
            steps=tuple(range(1, 16)),
            learned=curve_from(0.5, 0.0, 15, 0.6),
            baseline=curve_from(1.1, 0.02, 15, 0.2),
            recorded=curve_from(1.2, 0.0, 15, 0.15),
            runs=len(runs),
            saved_evaluations=7.3,
            saved_interval=(4.1, 10.2),
        ),
        tasks=tuple(
            PastTask(
                i,
                len(values),
                1.1 - 0.05 * i,
                0.2 + 0.01 * i,
                outlier=i == 4,
                name=f"batch {i + 7}" if i < 6 else None,
            )
            for i, (_, values) in enumerate(runs)
        ),
        examples=tuple(
            Example(tuple(points), tuple(values), name=f"batch {i + 7}")
            for i, (points, values) in enumerate(runs[:2])
        ),
        chosen=Chosen({"kappa": 0.05, "learning_rate": 0.003, "feature_dim": 2}, 500, 3),
        tried=32,
        budget="normal",
        seconds=31.2,
        notes=("One run does not agree with the others.",),
    )


def make_runs(space: mp.Space, num_tasks: int, num_points: int):
    """Runs over any space: a bowl in the first coordinate of the unit cube, and a little noise."""
    rng = np.random.default_rng(0)
    runs = []
    for _ in range(num_tasks):
        unit = rng.uniform(size=(num_points, space.num_columns))
        points = space.decode(unit)
        position = space.encode(points)
        best = 0.6 + 0.1 * rng.normal()
        values = 0.9 - (position[:, 0] - best) ** 2 + 0.1 * position[:, -1]
        runs.append((points, (values + 0.01 * rng.normal(size=num_points)).tolist()))
    return runs
