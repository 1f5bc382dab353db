"""The sections of the page that are words and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from metaprior.belief import Prior
from metaprior.data import Categorical, Dimension
from metaprior.report._findings import Findings, HeldOut, PastTask, Predictions, Replay
from metaprior.report._held_out import Figure
from metaprior.report._html import Html, element, joined, name, paragraph, table
from metaprior.words import MISSING, counted, cut, cut_inside, fixed, number, value

MOST_TASKS = 50
MOST_DIMENSIONS = 60
MOST_CHOICES = 6
# Longer names and settings are cut.
LONGEST_NAME, LONGEST_RUN, LONGEST_SETTING = 80, 41, 160

# The lines and marks of the figures, as the style sheet draws them, and what they are.
Key = Sequence[tuple[str, str]]


def section(ident: str, title: str, *parts: str) -> Html:
    """A part of the page under its heading."""
    heading = element("h2", title, id=f"{ident}-title")
    return element("section", heading, *parts, id=ident, aria_labelledby=f"{ident}-title")


def figures(drawn: Sequence[Figure], key: Key) -> Html:
    """Figures side by side where there is room, with one key for all of them."""
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


def numbers(held_out: HeldOut | None, replay: Replay | None) -> Html:
    """Three numbers, each beside the vanilla GP's; a dash where one was not measured."""
    nothing = Predictions(None, None, None, None, None)
    learned = held_out.learned if held_out else nothing
    vanilla = held_out.vanilla if held_out else nothing
    saved = replay.saved_evaluations if replay else None
    interval = replay.saved_interval if replay else None
    within = (
        f"95 % interval {fixed(interval[0], 1)} to {fixed(interval[1], 1)}; " if interval else ""
    )
    cards = (
        ("Evaluations saved", fixed(saved, 1), f"{within}compared with a vanilla GP"),
        (
            "Calibration error",
            fixed(learned.calibration_error, 3),
            f"vanilla GP: {fixed(vanilla.calibration_error, 3)}; 0 is perfect",
        ),
        (
            "Held-out log-likelihood",
            fixed(learned.log_likelihood, 2),
            f"vanilla GP: {fixed(vanilla.log_likelihood, 2)}; higher is better",
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
    return joined([listed, space] if facts else [space])


def _described(dimension: Dimension) -> tuple[str, str]:
    if isinstance(dimension, Categorical):
        first = [cut(str(choice), LONGEST_NAME) for choice in dimension.choices[:MOST_CHOICES]]
        more = len(dimension.choices) - len(first)
        listed = joined((name(choice) for choice in first), ", ")
        return "categorical", joined([listed, f" and {more} more" if more else ""])
    kind = type(dimension).__name__.lower() + (", log" if dimension.log else "")
    return kind, f"{value(dimension.low)} to {value(dimension.high)}"


def past_tasks(tasks: Sequence[PastTask]) -> Html:
    """All past runs, or the outliers among them and as many others as one reads."""
    ordered = sorted(tasks, key=lambda task: not task.is_outlier)
    outliers = sum(task.is_outlier for task in tasks)
    shown = ordered[:MOST_TASKS]
    rows = [
        (
            joined(
                [name(cut_inside(task.name, LONGEST_RUN)), *([_badge()] if task.is_outlier else [])]
            ),
            MISSING if task.num_points is None else str(task.num_points),
            fixed(task.log_likelihood, 2),
            fixed(task.vanilla_log_likelihood, 2),
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
    header = ("Run", "Points", "Learned prior", "Vanilla GP")
    caption = "Log-likelihood of each run, predicted by a prior that had not seen it"
    return joined([paragraph(found + more), table(caption, header, rows, class_="figured")])


def _badge() -> Html:
    return joined([" ", element("strong", "outlier", class_="badge")])


def choice(findings: Findings, method: str, settings: Mapping[str, Any]) -> Html:
    """The settings that were chosen, or given, and what the choice took.

    - `method`, `settings`: of the prior itself.
    """
    facts = [f"Learned by {method}."]
    if findings.num_tried is not None:
        took = f" in {number(findings.seconds, 2)} s" if findings.seconds is not None else ""
        budget = f" (budget: {findings.budget})" if findings.budget else ""
        tried = counted(findings.num_tried, "setting was", "settings were")
        facts.append(f"{tried} tried on held-out runs{took}{budget}.")
    if findings.num_steps is not None:
        facts.append(f"Trained for {counted(findings.num_steps, 'step')}.")
    if findings.num_members is not None and findings.num_members > 1:
        facts.append(f"An ensemble of {findings.num_members}.")
    listed = findings.settings or settings
    rows = [(words, cut(value(of), LONGEST_SETTING)) for words, of in listed.items()]
    caption = "Settings chosen" if findings.settings else "Settings"
    shown = [table(caption, ("Setting", "Value"), rows)] if rows else []
    return joined([paragraph(" ".join(facts)), *shown])


def notes(findings: Findings, limits: Sequence[str]) -> Html:
    """What the reader should know, and when not to use the prior."""
    parts = []
    if findings.notes:
        parts.append(element("ul", *(element("li", note) for note in findings.notes)))
    parts.append(element("h3", "When not to use it"))
    parts.append(element("ul", *(element("li", limit) for limit in limits)))
    return joined(parts)
