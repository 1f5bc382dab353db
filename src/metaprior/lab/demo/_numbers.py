"""The demo's numbers, as one JSON value."""

from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float

from metaprior.lab.demo._computation import (
    CONTEXT_SIZES,
    FIXED_GP,
    FPACOH,
    DemoResults,
    DemoSizes,
)
from metaprior.metrics import calibration_error, coverage, mean_and_interval

REPORTED_QUERIES = (5, 10, 20, 40)


def demo_numbers(sizes: DemoSizes, seed: int, results: DemoResults) -> dict[str, Any]:
    """Everything the demo measured, as JSON values under readable names."""
    branin, mixture = results
    return {
        "seed": seed,
        "sizes": asdict(sizes),
        "simple_regret": {name: _regret(regret) for name, regret in branin.regret.items()},
        "speed_up": speed_up(branin.regret[FPACOH], branin.regret[FIXED_GP]),
        "predictions": {
            name: {
                str(size): {
                    "calibration_error": calibration_error(predictions.cdf[:, i]),
                    "log_likelihood": float(np.mean(predictions.log_density[:, i])),
                    "coverage_of_95_percent": float(coverage(predictions.cdf[:, i], [0.95])[0]),
                }
                for i, size in enumerate(CONTEXT_SIZES)
            }
            for name, predictions in mixture.predictions.items()
        },
    }


def speed_up(
    ours: Float[np.ndarray, "tasks queries"], theirs: Float[np.ndarray, "tasks queries"]
) -> dict[str, int | None]:
    """How many queries we need to be, on average, where they are at the end; `None`: more."""
    reached = np.flatnonzero(ours.mean(axis=0) <= theirs.mean(axis=0)[-1])
    return {
        "queries_of_f_pacoh": int(reached[0]) + 1 if len(reached) else None,
        "queries_of_fixed_gp": theirs.shape[1],
    }


def _regret(regret: Float[np.ndarray, "tasks queries"]) -> dict[str, dict[str, float]]:
    mean, half_width = mean_and_interval(regret)
    return {
        str(t): {"mean": float(mean[t - 1]), "half_width_95": float(half_width[t - 1])}
        for t in REPORTED_QUERIES
        if t <= regret.shape[1]
    }
