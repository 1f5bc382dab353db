"""Methods against the baseline on the same priors: differences, intervals, wins and losses."""

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from benchmarks.field._records import split_by
from metaprior.metrics import mean_and_interval

# Columns of the tables, with the digits that are shown.
COLUMNS = {
    "evaluations to 5%": 1,
    "evaluations to 1%": 1,
    "solved 1%": 3,
    "stalled": 3,
    **{f"regret@{t}": 4 for t in (1, 3, 5, 10, 20, 30, 50)},
    "coverage": 3,
    **{f"calibration@{t}": 3 for t in (4, 8, 16, 32)},
    **{f"density@{t}": 2 for t in (4, 16)},
    "seconds": 3,
    "learning seconds": 0,
}
HIGHER_IS_BETTER = ("solved", "density")
# Of these no side of zero is the better one, or it is not what a method wins by.
NOT_JUDGED = ("coverage", "seconds", "learning seconds")
WIN, TIE, LOSS = "wins", "ties", "loses"


class Difference(NamedTuple):
    """Mean and half-width of the interval."""

    mean: float
    half: float


class Compared(NamedTuple):
    """A method minus the baseline, by column, on `priors` of both."""

    priors: int
    columns: dict[str, Difference]

    def text(self, column: str) -> str:
        """The difference as a cell of a table."""
        if column not in self.columns:
            return "–"
        mean, half = self.columns[column]
        digits = COLUMNS[column]
        return f"{mean:+.{digits}f}" + (f" ± {half:.{digits}f}" if half < float("inf") else "")

    def verdict(self, column: str) -> str | None:
        """What the baseline does against the method, as far as the interval says."""
        mean, half = self.columns.get(column, (0.0, float("inf")))
        if half == float("inf"):
            return None
        worse = -mean if column.startswith(HIGHER_IS_BETTER) else mean
        return TIE if abs(mean) <= half else (WIN if worse > 0.0 else LOSS)


def compare(measures: pd.DataFrame, baseline: str) -> dict[str, Compared]:
    """All methods against the baseline, each on the priors that both have."""
    unit = ["phase", "family", "regime", "seed"]
    own = measures[measures["method"] == baseline].set_index(unit)
    found = {}
    for (method,), theirs in sorted(split_by(measures, ["method"]).items()):
        both = theirs.set_index(unit).join(own.add_suffix(" of baseline"), how="inner")
        if method == baseline or both.empty:
            continue
        columns = {}
        for column in (c for c in COLUMNS if c in both):
            values = (both[column] - both[f"{column} of baseline"]).dropna()
            if len(values):
                columns[column] = Difference(*map(float, mean_and_interval(values.to_numpy())))
        found[str(method)] = Compared(len(both), columns)
    return found


@dataclass(frozen=True)
class Tally:
    """Cells in which the baseline wins, ties and loses."""

    wins: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()

    @property
    def counts(self) -> str:
        """As a cell of a table."""
        return f"{len(self.wins)} / {len(self.ties)} / {len(self.losses)}"


def wins_and_losses(measures: pd.DataFrame, baseline: str) -> dict[tuple[str, str], Tally]:
    """By method and column, over cells; cells of a single prior say nothing and are left out."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (family, regime), cell in split_by(measures, ["family", "regime"]).items():
        for method, compared in compare(cell, baseline).items():
            for column in (c for c in COLUMNS if c not in NOT_JUDGED):
                verdict = compared.verdict(column)
                if verdict is not None:
                    tally = found.setdefault((method, column), {WIN: [], TIE: [], LOSS: []})
                    tally[verdict].append(f"{family} {regime}")
    order = {column: i for i, column in enumerate(COLUMNS)}
    names = sorted(found, key=lambda key: (key[0], order[key[1]]))
    return {key: Tally(*(tuple(cells) for cells in found[key].values())) for key in names}
