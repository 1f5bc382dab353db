"""What records say: regret as a fraction of the gap, evaluations to a target, calibration."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from benchmarks.field._records import LEVELS, PREDICTED_AFTER, split_by

STEPS = (1, 3, 5, 10, 20, 30, 50)
TARGETS = (0.05, 0.01)
STALLED_QUERIES = 20
PRIOR = ["phase", "family", "regime", "seed", "method"]


def measured(records: pd.DataFrame) -> pd.DataFrame:
    """One row for each prior and method: means over new tasks, and calibration pooled over them."""
    rows = []
    for names, runs in split_by(records, PRIOR).items():
        rows.append(dict(zip(PRIOR, names, strict=True)) | of_prior(runs))
    return pd.DataFrame(rows)


def of_prior(runs: pd.DataFrame) -> dict[str, float]:
    """Measures of the runs of one prior on its new tasks."""
    single = [of_regret(np.asarray(regret)) for regret in runs["regret"]]
    found = {name: float(np.mean([run[name] for run in single])) for name in single[0]}
    found["tasks"] = float(len(runs))
    found["seconds"] = float(runs["seconds"].to_numpy().mean())
    found["learning seconds"] = float(runs["learning_seconds"].to_numpy()[0])
    asked = int(runs["asked"].to_numpy().sum())
    if asked > 0:
        found["coverage"] = float(runs["inside"].to_numpy().sum() / asked)
    for step in PREDICTED_AFTER:
        counts = [np.asarray(part) for part in runs[f"at_most@{step}"] if len(part)]
        if counts:
            found[f"calibration@{step}"] = pooled_calibration_error(np.stack(counts))
            found[f"density@{step}"] = float(runs[f"density@{step}"].to_numpy().mean())
    return found


def of_regret(regret: Float[np.ndarray, " t"]) -> dict[str, float]:
    """Measures of one run; evaluations count one more than there were where a target was missed."""
    found = {f"regret@{t}": float(regret[min(t, len(regret)) - 1]) for t in STEPS}
    for target in TARGETS:
        reached = np.flatnonzero(regret <= target)
        name = f"{100 * target:.0f}%"
        found[f"evaluations to {name}"] = float(reached[0] + 1 if len(reached) else len(regret) + 1)
        found[f"solved {name}"] = float(len(reached) > 0)
    before = regret[max(len(regret) - STALLED_QUERIES - 1, 0)]
    found["stalled"] = float(regret[-1] > 0.01 and regret[-1] == before)
    return found


def pooled_calibration_error(at_most: Float[np.ndarray, "runs levels"]) -> float:
    """`metaprior.metrics.calibration_error` from counts: how many values were at most each level.

    The last level is 1, so that its count is the number of values.
    """
    shares = at_most.sum(axis=0) / at_most[:, -1].sum()
    return float(np.sqrt(np.mean((shares - LEVELS) ** 2)))
