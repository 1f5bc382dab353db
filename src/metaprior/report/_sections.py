"""The sections of the page that consist of text and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from metaprior.belief import Prior
from metaprior.data import Categorical, Dimension
from metaprior.findings import Findings, HeldOutScores, Replay
from metaprior.report._definitions import linked
from metaprior.report._held_out import Figure
from metaprior.report._html import Html, element, joined, name, paragraph, table
from metaprior.words import MISSING, counted, cut, fixed, number, value

MOST_DIMENSIONS = 60
MOST_CHOICES = 6
# Longer names and settings are cut.
LONGEST_NAME, LONGEST_SETTING = 80, 160
LONGEST_RULE = 120

# Lines and marks of the figures: their class in the style sheet, and their meaning.
Key = Sequence[tuple[str, str]]


def section(ident: str, title: str, lead: Sequence[str], *parts: str) -> Html:
    """A section of the page: heading and lead, and beside or below them what there is to see."""
    heading = element("h2", title, id=f"{ident}-title")
    return element(
        "section",
        element("div", heading, *lead, class_="lead"),
        element("div", *parts, class_="content"),
        id=ident,
        aria_labelledby=f"{ident}-title",
    )


def key_of(key: Key) -> Html:
    """What the lines and marks of figures stand for."""
    entries = (element("li", element("span", class_=f"mark {m}"), words) for m, words in key)
    return element("ul", *entries, class_="key")


def figures(drawn: Sequence[Figure], *beside: str) -> Html:
    """Figures side by side where there is room, and what else stands beside them."""
    return element("div", *(_figure(each) for each in drawn), *beside, class_="figures")


def _figure(figure: Figure) -> Html:
    parts = [element("h3", name(figure.title)), figure.drawing]
    if figure.caption:
        parts.append(element("figcaption", figure.caption))
    return element("figure", *parts)


def numbers(findings: Findings) -> Html:
    """Three numbers with their 95 % intervals, each beside the baseline's; a dash where one was not
    measured."""
    held_out, replay = findings.held_out or HeldOutScores(), findings.replay or Replay()
    learned, baseline = held_out.learned, held_out.baseline
    runs = f"{replay.runs} held-out runs" if replay.runs else "held-out runs"
    cards = (
        (
            _term("saved", "Evaluations saved per run", findings.replay is not None),
            fixed(replay.saved_evaluations, 1),
            _interval(replay.saved_interval, 1),
            joined([f"replay of {runs}, relative to the ", _baseline(findings)]),
        ),
        (
            _term("calibration", "Calibration error", findings.held_out is not None),
            fixed(learned.calibration_error, 3),
            _interval(learned.calibration_interval, 3),
            joined(
                [
                    "0 is perfect; ",
                    _baseline(findings),
                    ": ",
                    _with_interval(baseline.calibration_error, baseline.calibration_interval, 3),
                ]
            ),
        ),
        (
            _term("likelihood", "Held-out log-likelihood", findings.held_out is not None),
            fixed(learned.log_likelihood, 2),
            _interval(learned.log_likelihood_interval, 2),
            joined(
                [
                    "nats per observation, higher is better; ",
                    _baseline(findings),
                    ": ",
                    _with_interval(baseline.log_likelihood, baseline.log_likelihood_interval, 2),
                ]
            ),
        ),
    )
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", words),
                element("dd", big, class_="big"),
                *([element("dd", within, class_="within")] if within else []),
                element("dd", small, class_="small"),
            )
            for words, big, within, small in cards
        ),
        class_="numbers",
    )


def _baseline(findings: Findings) -> str:
    return linked("baseline", findings.baseline) if findings.held_out else findings.baseline


def _term(ident: str, words: str, is_defined: bool) -> str:
    return linked(ident, words) if is_defined else words


def _interval(interval: tuple[float, float] | None, decimals: int) -> str:
    if interval is None:
        return ""
    return f"95 % interval {fixed(interval[0], decimals)} to {fixed(interval[1], decimals)}"


def _with_interval(of: float | None, interval: tuple[float, float] | None, decimals: int) -> str:
    """A number, and its interval in brackets."""
    if interval is None:
        return fixed(of, decimals)
    low, high = (fixed(end, decimals) for end in interval)
    return f"{fixed(of, decimals)} ({low} to {high})"


def facts(prior: Prior) -> list[Html]:
    """What it was trained on, in numbers."""
    found = [f"{words}: {value(of)}" for words, of in prior.trained_on.items()]
    return (
        [element("ul", *(element("li", fact) for fact in found), class_="facts")] if found else []
    )


def trained_on(prior: Prior) -> Html:
    """The space, and what was known of the tasks."""
    named = list(zip(prior.space.names, prior.space.dimensions, strict=True))
    rows = [
        (name(cut(words, LONGEST_NAME)), *_described(dimension))
        for words, dimension in named[:MOST_DIMENSIONS]
    ]
    count = counted(len(named), "dimension")
    more = f"; the first {MOST_DIMENSIONS} of them" if len(named) > MOST_DIMENSIONS else ""
    space = table(f"{count}{more}", ("Name", "Kind", "Values"), rows)
    return joined([space, *_features(prior)])


def _features(prior: Prior) -> list[Html]:
    """What was known of the past runs, what is given of a task, and the limits of the value."""
    parts = []
    if prior.features.names:
        given = prior.task
        rows = [
            (name(cut(f.name, LONGEST_NAME)), str(f), value(given.get(f.name, MISSING)))
            for f in prior.features.used
        ]
        rows += [
            (name(cut(words, LONGEST_NAME)), f"not used: {why}", value(given.get(words, MISSING)))
            for words, why in prior.features.unused
        ]
        header = ("Name", "In past runs", "In this report")
        parts.append(table(counted(len(rows), "task feature"), header, rows))
    if prior.value_bounds is not None:
        low, high = prior.value_bounds
        unit = f" {prior.quantity.unit}" if prior.quantity.unit else ""
        parts.append(paragraph(f"The value is between {value(low)} and {value(high)}{unit}."))
    return parts


def _described(dimension: Dimension) -> tuple[str, str]:
    if isinstance(dimension, Categorical):
        first = [cut(str(choice), LONGEST_NAME) for choice in dimension.choices[:MOST_CHOICES]]
        more = len(dimension.choices) - len(first)
        listed = joined((name(choice) for choice in first), ", ")
        rest = (f" and {more} more" if more else "") + _condition(dimension)
        return "categorical", joined([listed, rest])
    kind = type(dimension).__name__.lower() + (", log" if dimension.log else "")
    steps = "" if dimension.step is None else f" in steps of {value(dimension.step)}"
    bounds = f"{value(dimension.low)} to {value(dimension.high)}"
    return kind, f"{bounds}{steps}{_condition(dimension)}"


def _condition(dimension: Dimension) -> str:
    """Where the dimension exists, if not everywhere."""
    rules = [f"{parent} is {' or '.join(map(str, values))}" for parent, values in dimension.when]
    return f"; only if {cut(' and '.join(rules), LONGEST_RULE)}" if rules else ""


def effort(findings: Findings, method: str) -> Html:
    """How the prior was learned, in words."""
    chosen = findings.chosen
    facts = [f"Learned by {method}."]
    if findings.tried is not None:
        took = f" in {number(findings.seconds, 2)} s" if findings.seconds is not None else ""
        budget = f" (budget: {findings.budget})" if findings.budget else ""
        tried = counted(findings.tried, "setting was", "settings were")
        facts.append(f"{tried} tried on held-out runs{took}{budget}.")
    if chosen.steps is not None:
        facts.append(f"Trained for {counted(chosen.steps, 'step')}.")
    if chosen.members is not None and chosen.members > 1:
        facts.append(f"An ensemble of {chosen.members}.")
    return paragraph(" ".join(facts))


def settings(chosen: Mapping[str, Any]) -> Html:
    """The settings that were chosen or given."""
    entries = (
        element("div", element("dt", words), element("dd", cut(value(of), LONGEST_SETTING)))
        for words, of in chosen.items()
    )
    return element("dl", *entries, class_="settings")


def notes(findings: Findings, limits: Sequence[str]) -> Html:
    """What the reader should know, and when not to use the prior."""
    parts = []
    if findings.remarks:
        remarks = (element("li", note) for note in findings.remarks)
        parts.append(element("div", element("h3", "Notes"), element("ul", *remarks)))
    never = element("ul", *(element("li", limit) for limit in limits))
    parts.append(element("div", element("h3", "When not to use it"), never))
    return element("div", *parts, class_="columns")
