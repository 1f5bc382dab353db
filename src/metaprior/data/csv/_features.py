"""Task features from columns that are the same in all rows of a run."""

from collections.abc import Collection, Sequence

from metaprior.data import FeatureValue
from metaprior.data.csv._cells import BOOLS, Cell, TextRun, complaint, number
from metaprior.words import shortened


def features_of_runs(
    runs: Sequence[TextRun], names: Collection[str]
) -> list[dict[str, FeatureValue | None]]:
    """What the columns called `names` say of each run; empty cells say nothing.

    - `runs`: their `features` are the cells of these columns.
    """
    columns = {name: _parsed([_one_cell(run, name) for run in runs], name) for name in names}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(runs))]


def never_changes(runs: Sequence[Sequence[str]]) -> bool:
    """Whether a column, given run by run, is the same in all rows of each of several runs: it then
    says something of the run, and is nothing to choose point by point."""
    several = [cells for cells in runs if len(cells) > 1]
    return len(several) > 1 and all(is_constant(cells) for cells in several)


def is_constant(cells: Collection[str]) -> bool:
    """Whether all cells hold the same, as a number or as a text."""
    return len({_as_number(cell) for cell in cells}) <= 1


def feature_value(text: str) -> FeatureValue:
    """What a text stands for by itself: a number, `true` or `false`, or the text."""
    found = number(text)
    return BOOLS.get(text.lower(), text) if found is None else found


def _one_cell(run: TextRun, name: str) -> Cell:
    """The first cell that is not empty; another one that differs is an error."""
    cells = run.features.get(name, [])
    given = [i for i, cell in enumerate(cells) if cell]
    if not given:
        return Cell("", f"run {run.name} ({run.path})")
    first = given[0]
    for i in given[1:]:
        if _as_number(cells[i]) != _as_number(cells[first]):
            raise complaint([run], name)(
                i,
                f"received {shortened(cells[i])} after {shortened(cells[first])} in the same run; "
                "a task feature is the same for all points of a run, so repair the cell, or do "
                "not name the column with --feature",
            )
    return Cell(cells[first], f"{run.path}, row {run.rows[first]}, column {name!r}")


def _parsed(cells: list[Cell], name: str) -> list[FeatureValue | None]:
    """The cells of one feature as values of one kind."""
    given = [cell for cell in cells if cell.text]
    if given and all(cell.text.lower() in BOOLS for cell in given):
        return [BOOLS[cell.text.lower()] if cell.text else None for cell in cells]
    numbers = [cell for cell in given if number(cell.text) is not None]
    if numbers and len(numbers) < len(given):
        texts = [cell for cell in given if number(cell.text) is None]
        wrong, kind = (texts[0], "numbers") if len(texts) <= len(numbers) else (numbers[0], "text")
        raise ValueError(
            f"{wrong.place}: the task feature is {shortened(wrong.text)}, and other runs have "
            f"{kind} there; repair the cell, or empty it if the feature is not known."
        )
    return [(number(cell.text) if numbers else cell.text) if cell.text else None for cell in cells]


def _as_number(cell: str) -> int | float | str:
    found = number(cell)
    return cell if found is None else found
