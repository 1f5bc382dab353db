"""The records as a page: a table for each phase, means over priors with paired intervals."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.field._measures import measured
from metaprior.metrics import mean_and_interval

BASELINE = "learn"
COLUMNS = {
    "evaluations to 5%": 1,
    "evaluations to 1%": 1,
    "solved 1%": 3,
    "stalled": 3,
    **{f"regret@{t}": 3 for t in (1, 3, 5, 10, 20, 30, 50)},
    "coverage": 3,
    "calibration@4": 3,
    "calibration@16": 3,
    "density@4": 2,
    "density@16": 2,
}
# By prior and method.
Measured = dict[str, dict[str, dict[str, float]]]

HEAD = """# The field benchmark

Real evaluations as finite pools, tasks that were not learned from, one protocol for all methods:

```console
python -m benchmarks.field run --lcbench lcbench.parquet --out field/ --workers 16
python -m benchmarks.field show --out field/ > docs/field.md
```

Regret is a fraction of the gap between the median and the best configuration of a task; evaluations
count 51 where 50 did not reach the target; a run is stalled if it is above 1 % and its last 20
queries improved nothing. Coverage is that of central 95 % bands at the points that were asked, each
predicted before; calibration error and log density are those of 64 rows of the pool. The unit of
replication is the prior: a mean over its new tasks is one number. Differences are from
`{baseline}` on the same priors, with 95 % intervals of Student.
"""


def page(folder: Path) -> str:
    """All tables, in Markdown."""
    text = HEAD.format(baseline=BASELINE)
    phases = read(folder / "records")
    for phase, families in sorted(phases.items()):
        for family, priors in sorted(families.items()):
            text += f"\n## {family}, {phase} tasks\n\n{table(priors)}\n{differences(priors)}"
    return text


def read(folder: Path) -> dict[str, dict[str, Measured]]:
    """Measures by phase, family, prior and method."""
    found: dict[str, dict[str, Measured]] = defaultdict(lambda: defaultdict(dict))
    for file in sorted(folder.glob("*.json")):
        record: dict[str, Any] = json.loads(file.read_text())
        cell = record["cell"]
        priors = found[cell["phase"]][cell["family"]]
        prior = f"{cell['regime']} {cell['seed']}"
        priors.setdefault(prior, {})[record["method"]] = measured(record["runs"])
    return found


def table(priors: Measured) -> str:
    """Means over priors, a row for each method."""
    methods = sorted({name for own in priors.values() for name in own})
    lines = ["| method | priors | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name in methods:
        rows = [own[name] for own in priors.values() if name in own]
        cells = [_mean(rows, column, digits) for column, digits in COLUMNS.items()]
        lines.append(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def differences(priors: Measured) -> str:
    """Paired differences from the baseline, where it was run too."""
    methods = sorted({name for own in priors.values() for name in own} - {BASELINE})
    shown = [c for c in COLUMNS if not c.startswith(("coverage", "calibration", "density"))]
    lines = [f"| minus {BASELINE} | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for name in methods:
        pairs = [
            (own[name], own[BASELINE]) for own in priors.values() if {name, BASELINE} <= {*own}
        ]
        if len(pairs) > 1:
            cells = [_paired(pairs, column) for column in shown]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _mean(rows: list[dict[str, float]], column: str, digits: int) -> str:
    values = [row[column] for row in rows if column in row]
    return f"{np.mean(values):.{digits}f}" if values else "–"


def _paired(pairs: list[tuple[dict[str, float], dict[str, float]]], column: str) -> str:
    mean, half = mean_and_interval([ours[column] - theirs[column] for ours, theirs in pairs])
    digits = COLUMNS[column]
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"
