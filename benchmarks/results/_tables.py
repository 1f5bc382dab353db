"""The tables of the page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.results._samples import partial_in
from benchmarks.results._statistics import Better, Comparison, DataFrame, estimate, rank, score
from metaprior.lab.plots import (
    MISSING,
    Bold,
    Cell,
    Estimate,
    Published,
    estimate_text,
    in_order,
    key_of,
    looks_of,
    title_of,
)
from metaprior.lab.studies import ChosenConfiguration, read_configurations

# Columns of the tables of configurations, and of the work of a search.
SCORES = (
    *("early_regret", "simple_regret", "inference_regret"),
    *("log_likelihood", "calibration_error", "tied"),
)
EFFORT = ("configurations", "candidates", "diverged", "training_steps", "runs", "queries")


def markdown(header: list[str], rows: list[list[Cell]]) -> str:
    """A table in Markdown: names to the left, numbers to the right."""
    marks = [":--", *(["--:"] * (len(header) - 1))]
    lines = [header, marks, *([_text(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def label_of(method: str) -> str:
    """What an entrant is called."""
    return looks_of([method])[method].label


def by_method(columns: Mapping[str, DataFrame], better: Better) -> str:
    """A row for each method, a column for each of `columns`, which hold samples of one environment.

    The best mean and all that cannot be told from it are bold; a method with fewer seeds than the
    others has their number after its name.
    """
    cells = {heading: _column(samples, better) for heading, samples in columns.items()}
    methods = looks_of(name for column in cells.values() for name in column)
    rows: list[list[Cell]] = [
        [_marked(name, columns), *(column.get(name, MISSING) for column in cells.values())]
        for name in methods
    ]
    return markdown(["", *cells], rows)


def _marked(name: str, columns: Mapping[str, DataFrame]) -> str:
    seeds = {
        int(some.loc[some["method"] == name, "seed"].nunique())
        for some in columns.values()
        if name in partial_in(some)
    }
    return label_of(name) + (f" ({max(seeds)} seeds)" if seeds else "")


def by_environment(samples: DataFrame, better: Better) -> str:
    """A row for each method, a column for each environment."""
    return by_method(environments_of(samples), better)


def beside_the_paper(samples: DataFrame, published: Published, better: Better) -> str:
    """Our row of each method and below it the one that the paper prints."""
    groups = environments_of(samples)
    ours = {title: _column(group, better) for title, group in groups.items()}
    rows: list[list[Cell]] = []
    for name in looks_of(samples["method"]):
        rows.append([label_of(name), *(column.get(name, MISSING) for column in ours.values())])
        if printed := published.get(key_of(name)):
            numbers = [
                "*{:.3f} ± {:.3f}*".format(*printed[key_of(each)])
                if key_of(each) in printed
                else MISSING
                for each in in_order(samples["environment"])
            ]
            rows.append([f"*{label_of(name)}, paper*", *numbers])
    return markdown(["", *groups], rows)


def environments_of(samples: DataFrame) -> dict[str, DataFrame]:
    """The samples of each environment under its title, in the order of the paper."""
    groups = dict(iter(samples.groupby("environment")))
    return {title_of(name): groups[name] for name in in_order(groups)}


def verdicts(moments: Mapping[str, Mapping[str, Mapping[str, Comparison]]]) -> str:
    """By moment, method and environment, and how often each verdict came."""
    names = in_order(
        environment
        for methods in moments.values()
        for found in methods.values()
        for environment in found
    )
    rows: list[list[Cell]] = []
    for moment, methods in moments.items():
        for name in looks_of(methods):
            found = methods[name]
            said = [found[each].verdict if each in found else MISSING for each in names]
            counts = " / ".join(map(str, score(dict(found))))
            rows.append([f"{label_of(name)}, {moment}", *said, counts])
    header = ["against", *(title_of(name) for name in names), "wins / ties / losses"]
    return markdown(header, rows)


def configurations(folder: Path) -> str:
    """One table for each method: what was chosen on each environment, and its validation scores."""
    found = read_configurations(folder)
    parts = []
    for method in looks_of(each.method for each in found):
        some = {each.environment: each for each in found if each.method == method}
        searched = list(next(iter(some.values())).searched["ranges"])
        rows: list[list[Cell]] = [
            [title_of(name), *_chosen(some[name], searched)] for name in in_order(some)
        ]
        header = ["", *searched, *(score.replace("_", " ") for score in SCORES)]
        parts.append(f"**{label_of(method)}**\n\n{markdown(header, rows)}")
    return "\n".join(parts)


def effort(folder: Path) -> str:
    """How much work the search of each method was, on all environments together."""
    found = read_configurations(folder)
    rows: list[list[Cell]] = []
    for method in looks_of(each.method for each in found):
        some = [each.searched for each in found if each.method == method]
        counts = [sum(int(each.get(name, 0)) for each in some) for name in EFFORT]
        rows.append([label_of(method), str(len(some)), *(f"{count:,}" for count in counts)])
    header = ["", "environments", *(name.replace("_", " ") for name in EFFORT)]
    return markdown(header, rows)


def _chosen(configuration: ChosenConfiguration, searched: list[str]) -> list[str]:
    settings, scores = configuration.settings, configuration.scores
    return [
        *(_short(settings[name]) for name in searched),
        *(f"{scores[name]:.2g}" if name in scores else MISSING for name in SCORES),
    ]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _column(samples: DataFrame, better: Better) -> dict[str, Cell]:
    leaders = rank(samples, better, partial_in(samples)).leaders
    return {
        str(name): Bold(estimate(some)) if name in leaders else estimate(some)
        for name, some in samples.groupby("method")
    }


def _text(cell: Cell) -> str:
    if isinstance(cell, Bold):
        return f"**{_text(cell.cell)}**"
    return estimate_text(cell) if isinstance(cell, Estimate) else cell
