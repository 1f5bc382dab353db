"""The page: verdict first, then the evidence, in the order of a reader's questions."""

from importlib.resources import files

from metaprior.belief import Prior, method_name
from metaprior.findings import NOTHING_MEASURED, Findings, HeldOutScores, Replay
from metaprior.plots import (
    MOST_CHOICES,
    MOST_SLICES,
    Slice,
    limits_of,
    middle_of,
    slices_through,
)
from metaprior.report import _sections as sections
from metaprior.report._held_out import Figure, held_out_figures, replay_figure
from metaprior.report._html import Html, element, joined, paragraph
from metaprior.report._posteriors import posterior_figures
from metaprior.report._sections import section
from metaprior.report._slices import drawn_slice
from metaprior.store import limits, settings_in_words
from metaprior.words import counted, cut

MODELS = (("learned", "learned prior"), ("baseline", "averaged GP"))
BAND = (("mean", "mean"), ("band", "95 % band of an observation"))
RUN = (
    ("best", "best point given"),
    ("given", "other points given"),
    ("later", "later points of the run"),
)


def page(prior: Prior, generator: str) -> str:
    """The whole page as text.

    - `generator`: program and version, for the `generator` tag.
    """
    findings = prior.findings or NOTHING_MEASURED
    names = prior.space.names
    slices = slices_through(
        prior.condition([], []).mean_and_band, prior.space, middle_of(prior.space), names
    )
    slices = sorted(slices, key=lambda along: -along.influence)
    parts = [
        _header(prior, findings),
        section("trained-on", "What it was trained on", sections.trained_on(prior)),
        *_held_out(findings.held_out),
        *_replay(findings.replay),
        _beliefs(slices, prior.direction),
        *_posteriors(posterior_figures(prior, findings.examples, slices)),
        *_past_runs(findings),
        section(
            "settings",
            "How it was chosen" if findings.chosen.settings else "How it was learned",
            sections.choice(
                findings,
                method_name(prior.contents.settings),
                settings_in_words(prior.contents.settings),
            ),
        ),
        section("notes", "Notes and limits", sections.notes(findings, limits(prior))),
        element("footer", paragraph(f"Written by {generator}.")),
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=generator),
        element("title", "Report on a learned prior"),
        element("style", Html(files("metaprior.report").joinpath("style.css").read_text())),
    )
    body = element("body", element("main", joined(parts, "\n")))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _header(prior: Prior, findings: Findings) -> Html:
    tasks = prior.trained_on.get("tasks")
    learned = f"learned from {counted(tasks, 'run')}, " if isinstance(tasks, int) else ""
    count = counted(len(prior.space.names), "dimension")
    about = f"A prior over functions of {count}, {learned}to be {prior.direction}d."
    return element(
        "header",
        element("h1", "Report on a learned prior"),
        element("p", findings.verdict, class_="verdict"),
        element("p", about, class_="about"),
        sections.numbers(findings),
    )


def _held_out(held_out: HeldOutScores | None) -> list[Html]:
    drawn = held_out_figures(held_out) if held_out else []
    if held_out is None or not drawn:
        return []
    tasks = (
        "Runs were" if held_out.tasks is None else counted(held_out.tasks, "run was", "runs were")
    )
    folds = f" in {counted(held_out.folds, 'fold')}" if held_out.folds else ""
    said = (
        f"{tasks} held out{folds}: each was predicted from its first points by a prior that had "
        "not seen it, and by an averaged GP, which has not seen any."
    )
    return [
        section(
            "held-out",
            "Predictions of held-out runs",
            paragraph(said),
            sections.figures(drawn, MODELS),
        )
    ]


def _replay(replay: Replay | None) -> list[Html]:
    figure = replay_figure(replay) if replay else None
    if figure is None:
        return []
    key = (*MODELS, ("recorded", "recorded order of the run"))
    return [section("replay", "How many evaluations it saves", sections.figures([figure], key))]


def _beliefs(slices: list[Slice], direction: str) -> Html:
    shown = slices[:MOST_SLICES]
    limits_of_all = limits_of(shown)
    drawn = [
        Figure(
            cut(along.name, 80),
            drawn_slice(along, limits_of_all, ident=f"slice-{number}"),
            _choices_left_out(along),
        )
        for number, along in enumerate(shown, start=1)
    ]
    said = "Before the first evaluation of a new run, along one dimension at a time"
    if len(slices) > 1:
        said += (
            ", the others at their midpoint or first choice; the most influential dimensions first"
        )
    if len(slices) > len(shown):
        said += f": {len(shown)} of {len(slices)} dimensions"
    return section(
        "prior", "What it believes", paragraph(f"{said}."), sections.figures(drawn, BAND)
    )


def _choices_left_out(along: Slice) -> str:
    choices = getattr(along.dimension, "choices", ())
    return (
        f"The first {MOST_CHOICES} of {len(choices)} choices."
        if len(choices) > MOST_CHOICES
        else ""
    )


def _posteriors(drawn: list[Figure]) -> list[Html]:
    if not drawn:
        return []
    said = (
        "Posteriors after the first points of two past runs. The prior has learned from these "
        "runs, so expect a slightly worse fit on a new one."
    )
    return [
        section(
            "posteriors",
            "Posteriors on past runs",
            paragraph(said),
            sections.figures(drawn, (*BAND, *RUN)),
        )
    ]


def _past_runs(findings: Findings) -> list[Html]:
    if not findings.tasks:
        return []
    return [section("past-runs", "The past runs", sections.past_tasks(findings.tasks))]
