"""What records say: regret as a fraction of the gap, evaluations to a target, calibration."""

from typing import Any

import numpy as np

from metaprior.metrics import calibration_error

STEPS = (1, 3, 5, 10, 20, 30, 50)
TARGETS = (0.05, 0.01)
STALLED_QUERIES = 20


def measured(records: list[dict[str, Any]]) -> dict[str, float]:
    """Means over the runs of one prior; evaluations count 51 where a target was not reached."""
    runs = [_of_run(record) for record in records]
    found = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
    asked = np.concatenate([record.get("cdf", []) for record in records])
    if len(asked):
        found["coverage"] = float(np.mean(np.abs(2.0 * asked - 1.0) <= 0.95))
        for step in records[0]["predicted"]:
            parts = [record["predicted"][step] for record in records if step in record["predicted"]]
            pooled = np.clip(np.concatenate([part[0] for part in parts]), 0.0, 1.0)
            found[f"calibration@{step}"] = calibration_error(pooled)
            found[f"density@{step}"] = float(np.mean([part[1] for part in parts]))
    return found


def _of_run(record: dict[str, Any]) -> dict[str, float]:
    regret = np.maximum.accumulate(np.asarray(record["values"]))
    regret = (record["best"] - regret) / record["gap"]
    found = {f"regret@{t}": float(regret[min(t, len(regret)) - 1]) for t in STEPS}
    for target in TARGETS:
        reached = np.flatnonzero(regret <= target)
        name = f"{100 * target:.0f}%"
        found[f"evaluations to {name}"] = float(reached[0] + 1 if len(reached) else len(regret) + 1)
        found[f"solved {name}"] = float(len(reached) > 0)
    before = regret[max(len(regret) - STALLED_QUERIES - 1, 0)]
    found["stalled"] = float(regret[-1] > 0.01 and regret[-1] == before)
    found["seconds"] = record["seconds"]
    return found
