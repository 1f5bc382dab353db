"""The records as a page: an overview, plain answers, and tables for each cell, with figures."""

from pathlib import Path
from textwrap import fill
from typing import Any

import pandas as pd

from benchmarks.field._compared import COLUMNS, compare, wins_and_losses
from benchmarks.field._measures import measured
from benchmarks.field._records import read, split_by
from metaprior.metrics import mean_and_interval

# Where coverage of 95 % bands, from few tasks, is called right.
BAND_COVERS = (0.90, 0.98)
CALIBRATIONS = tuple(f"calibration@{t}" for t in (4, 8, 16, 32))
BASELINES = ("learn", "learn (fast)")
HEAD = """# The field benchmark

Real evaluations as finite pools, tasks that were not learned from, and one protocol for all
methods.

{made}

- **Families**: LCBench (35 data sets, the same 2,000 networks on each), GLMNET, RPart and XGBoost.
- **Regimes**: *gp* and *tpe* are sparse pasts, 25 points of each past task, collected by a Gaussian
  process or by TPE. *grid* is a past of the same 200 configurations on every past task, and
  *off-grid* removes these from what new tasks can be asked. Both are on LCBench only: the tasks of
  the other families do not share their configurations.
- **Measures**: regret is a share of the gap between the median and the best configuration of a
  task; evaluations count 51 where 50 did not reach the target; a run is stalled if it is above 1 %
  and its last 20 queries improved nothing. Coverage is that of central 95 % bands at the points
  that were asked, each predicted before; calibration error (pooled over tasks) and log density are
  those of 64 configurations drawn from the pool, after so many queries. Seconds are CPU time of an
  ask on one core.
- **Units**: a mean over the new tasks of a prior is one number. Differences are from `{baseline}`
  on the same priors, with 95 % intervals (Student's t). A method *wins* against `{baseline}` in a
  cell if the interval of the difference is on its side of zero, *loses* if it is on the other side,
  and *ties* otherwise.
- **Effort**: every method has one configuration for all cells, that of its authors or its library,
  and none was tuned on test tasks. *SingleTaskGP* and *RGPE* are BoTorch's models with its fit and
  log expected improvement; *TPE* and *GPSampler* are Optuna's on the unit cube, where the nearest
  configuration that is left answers each proposal. *HyperBO* is a deep-kernel GP with a neural
  mean, trained on all past runs by marginal likelihood until the loss stands still; on *grid* its
  empirical divergence has the same minimiser, so that one row stands for both. *empirical GP* is
  the mean and covariance over past tasks, our own code: `botorch.models.empirical_gps` is not in
  BoTorch 0.18.
- **Not repeated**: a method that uses no past searches the same on *gp*, *tpe* and *grid*, so that
  it is run once for the three.
"""


def show(place: Path, page: Path | None, baseline: str | None) -> None:
    """Print the page, or write it and draw the figures beside it."""
    records, made = read(place)
    if page is None:
        print(text_of(records, made, baseline), end="")
        return
    from benchmarks.field._figures import draw

    figures = draw(records, page.parent / "images")
    page.write_text(text_of(records, made, baseline, figures))


def text_of(
    records: pd.DataFrame,
    made: dict[str, Any],
    baseline: str | None = None,
    figures: dict[tuple[str, str], str] | None = None,
) -> str:
    """The page in Markdown.

    - `figures`: paths from the page by phase and family.
    """
    measures = measured(records)
    methods = list(dict.fromkeys(measures["method"]))
    against = baseline or next((m for m in BASELINES if m in methods), methods[0])
    if against not in methods:
        raise ValueError(f"There are no records of {against!r}; give one of {', '.join(methods)}.")
    text = HEAD.format(made=_made(made), baseline=against)
    for (phase,), own in sorted(split_by(measures, ["phase"]).items()):
        text += f"\n## Overview: {phase} tasks\n\n{_overview(own, against)}"
        text += f"\n## Where `{against}` wins, ties and loses: {phase} tasks\n\n"
        text += _answers(own, against) + "\n" + _reliability(own, against)
        for (family, regime), cell in sorted(split_by(own, ["family", "regime"]).items()):
            text += f"\n## {family}, {regime}, {phase} tasks\n\n"
            if figures and (phase, family) in figures:
                text += f"![Regret over queries]({figures[phase, family]})\n\n"
            text += _means(cell) + "\n" + _differences(cell, against)
    return text


def _made(made: dict[str, Any]) -> str:
    if not made:
        return ""
    software = ", ".join(f"{k} {v}" for k, v in made.get("software", {}).items() if v)
    lines = "\n".join(made["commands"])
    said = fill(f"Measured on {made['date']} with {software}, by", 100)
    return f"{said}\n\n```console\n{lines}\n```\n"


def _overview(measures: pd.DataFrame, baseline: str) -> str:
    """Differences from the baseline over all cells, with the prior as the unit."""
    rows = []
    for method, found in compare(measures, baseline).items():
        rows.append([method, str(found.priors), *(found.text(column) for column in COLUMNS)])
    text = f"Differences from `{baseline}` over the priors of all cells in which both were run; "
    text += "the first row is the mean of the baseline itself.\n\n"
    own = split_by(measures, ["method"])[baseline,]
    first = [f"`{baseline}`", str(len(own)), *(_mean(own, c, d) for c, d in COLUMNS.items())]
    return text + _table(["method", "priors", *COLUMNS], [first, *rows])


def _answers(measures: pd.DataFrame, baseline: str) -> str:
    """Cells in which the baseline wins, ties and loses, by column; and where it loses, by name."""
    found = wins_and_losses(measures, baseline)
    columns = list(dict.fromkeys(column for _, column in found))
    rows = []
    for method in dict.fromkeys(method for method, _ in found):
        cells = [found.get((method, column)) for column in columns]
        rows.append([method, *("–" if c is None else c.counts for c in cells)])
    text = f"Number of cells in which `{baseline}` wins / ties / loses against a method.\n\n"
    text += _table(["against", *columns], rows)
    losses = [
        f"- {column}, against {method}: {', '.join(each.losses)}."
        for (method, column), each in found.items()
        if each.losses
    ]
    if not losses:
        return text + f"\n`{baseline}` loses in no cell.\n"
    return text + f"\n`{baseline}` loses in these cells:\n\n" + "\n".join(losses) + "\n"


def _reliability(measures: pd.DataFrame, baseline: str) -> str:
    """Whether the baseline's bands and predictions are what they say, in each cell."""
    own = split_by(measures, ["method"])[baseline,]
    cells = {
        f"{family} {regime}": {c: float(cell[c].to_numpy().mean()) for c in COLUMNS if c in cell}
        for (family, regime), cell in split_by(own, ["family", "regime"]).items()
    }
    lines = []
    covered = {name: cell["coverage"] for name, cell in cells.items() if "coverage" in cell}
    if covered:
        low, high = BAND_COVERS
        outside = [f"{n} ({v:.3f})" for n, v in covered.items() if not low <= v <= high]
        lines.append(
            f"- Coverage of `{baseline}` is between {min(covered.values()):.3f} and "
            f"{max(covered.values()):.3f}; outside {low:.2f} to {high:.2f}: "
            f"{', '.join(outside) or 'no cell'}."
        )
    for column, most in {**dict.fromkeys(CALIBRATIONS, 0.05), "stalled": 0.03}.items():
        above = [f"{n} ({c[column]:.3f})" for n, c in cells.items() if c.get(column, 0.0) > most]
        lines.append(f"- {column} of `{baseline}` above {most}: {', '.join(above) or 'no cell'}.")
    return "\n".join(lines) + "\n"


def _means(cell: pd.DataFrame) -> str:
    """Means over priors, a row for each method."""
    rows = []
    for (method,), own in sorted(split_by(cell, ["method"]).items()):
        rows.append([str(method), str(len(own)), *(_mean(own, c, d) for c, d in COLUMNS.items())])
    return _table(["method", "priors", *COLUMNS], rows)


def _differences(cell: pd.DataFrame, baseline: str) -> str:
    """Paired differences from the baseline, where it was run too."""
    found = compare(cell, baseline)
    rows = [[name, *(each.text(column) for column in COLUMNS)] for name, each in found.items()]
    return _table([f"minus {baseline}", *COLUMNS], rows) if rows else ""


def _mean(rows: pd.DataFrame, column: str, digits: int) -> str:
    values = rows[column].dropna().to_numpy() if column in rows else []
    if not len(values):
        return "–"
    mean, half = mean_and_interval(values)
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
