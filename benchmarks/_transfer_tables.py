"""The tables of `benchmarks.transfer`: its records pooled over seeds, one row per method."""

from collections import Counter
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from metaprior.metrics import mean_and_interval

LEARN, OURS = "learn", "F-PACOH-MAP"
FIXED, FITTED, RANDOM = "fixed GP", "fitted GP", "random search"
STEPS = (1, 3, 5, 10, 20, 50)
METRICS = (
    "inference regret at 20",
    "calibration error",
    "pooled calibration error",
    "log-likelihood",
)
# Rows that are shown as one, by the start of their names; `{}` is how many they are.
TOGETHER = {
    FITTED: "fitted GP, the better bound",
    FIXED: "fixed GP, best of {}",
    "configuration": "F-PACOH-MAP, best of {} configurations",
}
# Larger is better in this column, smaller in all others.
LARGER_IS_BETTER = ("log-likelihood",)
# What one method did on the tasks of one seed: each metric with one number per task (or seed).
Records = dict[str, dict[str, list]]
Samples = dict[str, np.ndarray]


def pool(several: list[Records]) -> dict[str, dict[str, np.ndarray]]:
    """The records of several seeds together; rows made for fewer seeds than others are left out."""
    made = Counter(name for each in several for name in each)
    seeds = max(count for name, count in made.items() if name != RANDOM)
    whole = [name for name, count in made.items() if count >= seeds and name != RANDOM]
    pooled = {}
    for name in whole:
        rows = [each[name] for each in several if name in each]
        pooled[name] = {
            metric: np.concatenate([np.asarray(row[metric]) for row in rows]) for metric in rows[0]
        }
    # A line-up that was made in parts has random search in each of them: once is enough.
    random = [np.asarray(each[RANDOM]["regret"]) for each in several if RANDOM in each][:seeds]
    return {**pooled, RANDOM: {"regret": np.concatenate(random)}} if random else pooled


def steps_of(results: dict) -> list[int]:
    """The steps at which regret is shown, as far as the longest runs go."""
    longest = max(result["regret"].shape[1] for result in results.values())
    return [t for t in STEPS if t <= longest]


def table(family: str, results: dict) -> Table:
    title = f"{family}: simple regret after t queries and others, mean ± 95 % interval"
    grid = Table("method", *header(results), title=title)
    for name, result in results.items():
        grid.add_row(name, *cells(result, results))
    return grid


def header(results: dict) -> list[str]:
    return [*(f"t={t}" for t in steps_of(results)), *METRICS]


def cells(result: dict, results: dict) -> list[str]:
    """One row of the table of `results`."""
    regret = result["regret"]
    made = [t for t in steps_of(results) if t <= regret.shape[1]]
    regrets = [shown(regret[:, t - 1], 2) for t in made] + [""] * (
        len(steps_of(results)) - len(made)
    )
    return [*regrets, *(shown(result[m], 3) if m in result else "" for m in METRICS)]


def shown(samples: np.ndarray, digits: int) -> str:
    mean, half_width = mean_and_interval(samples)
    return f"{float(mean):.{digits}g} ± {float(half_width):.1g}"


def markdown(family: str, results: dict) -> str:
    """The table of one family for a documentation page."""
    names = ["method", *header(results)]
    lines = [f"### {family}", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, result in results.items():
        lines.append(f"| {' | '.join([name, *cells(result, results)])} |")
    return "\n".join([*lines, ""])


def verdict(results: dict) -> list[float]:
    """Ours against the best baseline of each column, selected on the test metric."""
    baselines = [r for name, r in results.items() if name.startswith((FIXED, FITTED))]
    ours = results[LEARN if LEARN in results else OURS]
    row = [ours["regret"][:, 19].mean(), min(r["regret"][:, 19].mean() for r in baselines)]
    row.append(row[1] / row[0])
    for metric in ("calibration error", "pooled calibration error"):
        row += [ours[metric].mean(), min(r[metric].mean() for r in baselines)]
    return [float(value) for value in row]


def show(everything: dict[str, dict], console: Console) -> None:
    for family, results in everything.items():
        console.print(table(family, results))
    everything = {
        name: results for name, results in everything.items() if {OURS, FITTED} <= results.keys()
    }
    summary = Table(
        "family",
        "ours t=20",
        "best baseline t=20",
        "ratio (target 5)",
        "calibration error",
        "best baseline",
        "pooled",
        "best baseline",
        title="Ours against the best fixed or fitted GP of each column",
    )
    for family, results in everything.items():
        summary.add_row(family, *(f"{value:.3g}" for value in verdict(results)))
    console.print(summary)


def merged_baselines(results: dict[str, Samples]) -> dict[str, Samples]:
    """The rows of `results` with those of each group in `TOGETHER` as one: in every column the best
    of them, selected on the test metric."""
    alone = {name: row for name, row in results.items() if not name.startswith(tuple(TOGETHER))}
    together = {}
    for start, title in TOGETHER.items():
        rows = [row for name, row in results.items() if name.startswith(start)]
        if rows:
            together[title.format(len(rows))] = _columnwise(rows)
    return {**alone, **together}


def _columnwise(rows: list[Samples]) -> Samples:
    """For each column the samples of the row whose mean is best."""
    found: Samples = {}
    for metric in rows[0]:
        columns = [np.atleast_2d(row[metric].T) for row in rows if metric in row]
        pick: Callable = np.argmax if metric in LARGER_IS_BETTER else np.argmin
        best = [pick([mean_and_interval(c[i])[0] for c in columns]) for i in range(len(columns[0]))]
        chosen = np.stack([columns[which][i] for i, which in enumerate(best)], axis=-1)
        found[metric] = chosen if rows[0][metric].ndim == 2 else chosen[:, 0]
    return found
