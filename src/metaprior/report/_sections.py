"""The sections of the page that consist of text and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from metaprior.belief import Prior
from metaprior.data import Categorical, Dimension
from metaprior.findings import Findings, HeldOutScores, PastTask, Replay
from metaprior.report._held_out import Figure
from metaprior.report._html import Html, element, joined, name, paragraph, table
from metaprior.words import MISSING, counted, cut, fixed, number, value

MOST_TASKS = 50
MOST_DIMENSIONS = 60
MOST_CHOICES = 6
# Longer names and settings are cut.
LONGEST_NAME, LONGEST_SETTING = 80, 160
LONGEST_RULE = 120

# Lines and marks of the figures: their class in the style sheet, and their meaning.
Key = Sequence[tuple[str, str]]


def section(ident: str, title: str, *parts: str) -> Html:
    """A section of the page with its heading."""
    heading = element("h2", title, id=f"{ident}-title")
    return element("section", heading, *parts, id=ident, aria_labelledby=f"{ident}-title")


def figures(drawn: Sequence[Figure], key: Key) -> Html:
    """Figures side by side where there is room, with one shared key."""
    entries = (element("li", element("span", class_=f"mark {m}"), words) for m, words in key)
    return joined(
        [
            element("ul", *entries, class_="key"),
            element("div", *(_figure(each) for each in drawn), class_="figures"),
        ]
    )


def _figure(figure: Figure) -> Html:
    parts = [element("h3", name(figure.title)), figure.drawing]
    if figure.caption:
        parts.append(element("figcaption", figure.caption))
    return element("figure", *parts)


def numbers(findings: Findings) -> Html:
    """Three numbers, each beside the baseline's; a dash where one was not measured."""
    held_out, replay = findings.held_out or HeldOutScores(), findings.replay or Replay()
    learned, baseline = held_out.learned, held_out.baseline
    interval = replay.saved_interval
    within = (
        f"95 % interval {fixed(interval[0], 1)} to {fixed(interval[1], 1)}; " if interval else ""
    )
    cards = (
        (
            "Evaluations saved per run",
            fixed(replay.saved_evaluations, 1),
            f"{within}relative to an {findings.baseline}",
        ),
        (
            "Calibration error",
            fixed(learned.calibration_error, 3),
            f"{findings.baseline}: {fixed(baseline.calibration_error, 3)}; 0 is perfect",
        ),
        (
            "Held-out log-likelihood",
            fixed(learned.log_likelihood, 2),
            f"{findings.baseline}: {fixed(baseline.log_likelihood, 2)}; higher is better",
        ),
    )
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", words),
                element("dd", big, class_="big"),
                element("dd", small, class_="small"),
            )
            for words, big, small in cards
        ),
        class_="numbers",
    )


def trained_on(prior: Prior) -> Html:
    """The runs and the space."""
    facts = [f"{words}: {value(of)}" for words, of in prior.trained_on.items()]
    listed = element("ul", *(element("li", fact) for fact in facts), class_="facts")
    named = list(zip(prior.space.names, prior.space.dimensions, strict=True))
    rows = [
        (name(cut(words, LONGEST_NAME)), *_described(dimension))
        for words, dimension in named[:MOST_DIMENSIONS]
    ]
    count = counted(len(named), "dimension")
    more = f"; the first {MOST_DIMENSIONS} of them" if len(named) > MOST_DIMENSIONS else ""
    space = table(f"{count}{more}", ("Name", "Kind", "Values"), rows)
    parts = [*([listed] if facts else []), space, *_features(prior)]
    return joined(parts)


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
        parts.append(paragraph(f"The value is between {value(low)} and {value(high)}."))
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


def past_tasks(tasks: Sequence[PastTask]) -> Html:
    """The past runs, outliers first, up to `MOST_TASKS` of them."""
    ordered = sorted(tasks, key=lambda task: not task.outlier)
    outliers = sum(task.outlier for task in tasks)
    shown = ordered[:MOST_TASKS]
    rows = [
        (
            joined([str(task.task), *([_badge()] if task.outlier else [])]),
            MISSING if task.points is None else str(task.points),
            fixed(task.log_likelihood, 2),
            fixed(task.baseline_log_likelihood, 2),
        )
        for task in shown
    ]
    found = (
        f"{counted(outliers, 'run does', 'runs do')} not fit the others and "
        f"{'is' if outliers == 1 else 'are'} marked; consider learning without "
        f"{'it' if outliers == 1 else 'them'}."
        if outliers
        else "No run stands out from the others."
    )
    left = len(tasks) - len(shown)
    more = (
        f" {counted(left, 'more run')} {'is' if left == 1 else 'are'} not listed." if left else ""
    )
    header = ("Run", "Points", "Learned prior", "Baseline")
    caption = "Log-likelihood of each run under a prior that had not seen it"
    return joined([paragraph(found + more), table(caption, header, rows, class_="figured")])


def _badge() -> Html:
    return joined([" ", element("strong", "outlier", class_="badge")])


def choice(findings: Findings, method: str, settings: Mapping[str, Any]) -> Html:
    """The settings that were chosen or given, and the effort of the choice.

    - `method`, `settings`: of the prior itself.
    """
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
    listed = chosen.settings or settings
    rows = [(words, cut(value(of), LONGEST_SETTING)) for words, of in listed.items()]
    caption = "Settings chosen" if chosen.settings else "Settings"
    shown = [table(caption, ("Setting", "Value"), rows)] if rows else []
    return joined([paragraph(" ".join(facts)), *shown])


def notes(findings: Findings, limits: Sequence[str]) -> Html:
    """What the reader should know, and when not to use the prior."""
    parts = []
    if findings.remarks:
        parts.append(element("ul", *(element("li", note) for note in findings.remarks)))
    parts.append(element("h3", "When not to use it"))
    parts.append(element("ul", *(element("li", limit) for limit in limits)))
    return joined(parts)
