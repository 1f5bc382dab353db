"""F-PACOH against each method in a table: where it wins, ties and loses."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from metaprior.lab.plots._estimates import Comparison
from metaprior.lab.plots._looks import METHODS, OURS, in_order, looks_of, title_of
from metaprior.lab.plots._tables import MISSING, Table

# By method, then by environment.
Comparisons = Mapping[str, Mapping[str, Comparison]]

HOW = (
    "A win or a loss is a difference, seed by seed and task by task, whose 95 % interval leaves "
    "out zero."
)


def comparison_table(comparisons: Comparisons, what: str, label: str) -> Table:
    """A row for each method, a column for each environment, and how often each verdict came."""
    label_of = {name: look.label for name, look in looks_of(comparisons).items()}
    environments = in_order(name for found in comparisons.values() for name in found)
    rows = []
    for method, found in comparisons.items():
        verdicts = [found[name].verdict if name in found else MISSING for name in environments]
        rows.append([label_of[method], *verdicts, _score(found)])
    return Table(
        f"{METHODS[OURS].label} against each method: {what}",
        label,
        ["", *(title_of(name) for name in environments), "wins/ties/losses"],
        rows,
        HOW,
    )


def comparison_summary(comparisons: Comparisons) -> dict[str, Any]:
    """The same for programs, with the advantages and their intervals."""
    return {
        method: {"wins_ties_losses": _score(found), "environments": dict(found)}
        for method, found in comparisons.items()
    }


def _score(found: Mapping[str, Comparison]) -> str:
    counts = Counter(comparison.verdict for comparison in found.values())
    return f"{counts['win']}/{counts['tie']}/{counts['loss']}"
