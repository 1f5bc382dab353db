"""The page: verdict first, then the evidence, in the order of a reader's questions."""

from importlib.resources import files

from metaprior.belief import Prior, method_name
from metaprior.findings import NOTHING_MEASURED, Findings
from metaprior.plots import MOST_CHOICES, MOST_SLICES, Slice, limits_of, middle_of, slices_through
from metaprior.report import _sections as sections
from metaprior.report._definitions import definition_list, definitions_for, linked
from metaprior.report._first import first_queries, query_cards
from metaprior.report._held_out import (
    Figure,
    PanelCurve,
    held_out_figures,
    replay_curves,
    replay_figure,
)
from metaprior.report._html import Html, element, joined, paragraph, table
from metaprior.report._influence import Influence, influence_bars, influence_of, influence_words
from metaprior.report._past_runs import findings_on_runs, past_runs
from metaprior.report._posteriors import posterior_figures
from metaprior.report._relations import likeness_of
from metaprior.report._sections import Key, key_of, section
from metaprior.report._slices import drawn_slice
from metaprior.store import limits, settings_in_words
from metaprior.words import counted, cut, number

BAND = (("mean", "mean"), ("band", "95 % band of an observation"))
RUN = (
    ("best", "best point given"),
    ("given", "other points given"),
    ("later", "later points of the run"),
)
# Rows of the table beside the replay.
MOST_STEPS = 8


def page(prior: Prior, generator: str) -> str:
    """The whole page as text.

    - `generator`: program and version, for the `generator` tag.
    """
    findings = prior.findings or NOTHING_MEASURED
    influence = influence_of(prior)
    slices = _slices(prior, influence)
    parts = [
        _header(prior, findings),
        _first(prior, [along.name for along in slices]),
        *_matters(prior, influence),
        _beliefs(prior, slices),
        *_held_out(prior, findings),
        *_replay(findings),
        *_posteriors(posterior_figures(prior, findings.examples, slices)),
        *_past_runs(prior, findings),
        section(
            "trained-on",
            "What it was trained on",
            sections.facts(prior),
            sections.trained_on(prior),
        ),
        _settings(prior, findings),
        section("notes", "Notes and limits", [], sections.notes(findings, limits(prior))),
        section(
            "meaning",
            "What these numbers mean",
            [],
            definition_list(definitions_for(prior, findings)),
        ),
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


def _slices(prior: Prior, influence: Influence | None) -> list[Slice]:
    """Slices through the middle, those first along which the prior varies most."""
    space = prior.space
    predict = prior.condition([], []).mean_and_band
    slices = slices_through(predict, space, middle_of(space), space.names)
    if influence is None:
        return sorted(slices, key=lambda along: -along.influence)
    rank = {name: i for i, (name, _, _) in enumerate(influence.main)}
    return sorted(slices, key=lambda along: rank[along.name])


def _header(prior: Prior, findings: Findings) -> Html:
    tasks = prior.trained_on.get("tasks")
    learned = f", learned from {counted(tasks, 'run')}" if isinstance(tasks, int) else ""
    count = counted(len(prior.space.names), "dimension")
    label = cut(prior.quantity.label, 80)
    about = f"To {prior.direction} {label} over {count}{learned}."
    return element(
        "header",
        element("h1", "Report on a learned prior"),
        element("p", findings.verdict, class_="verdict"),
        element("p", about, class_="about"),
        sections.numbers(findings),
    )


def _first(prior: Prior, order: list[str]) -> Html:
    queries = first_queries(prior)
    count = counted(len(queries), "query", "queries")
    said = joined(
        [
            f"The first {count} of a new run, if they are made side by side, with the value that "
            "is expected of each and its ",
            linked("band", "95 % band"),
            f". Each is where the optimizer expects a {_good(prior)} value, or has most to learn "
            "after the ones before. Compare it with what you know: ",
            linked("chance", "the chances"),
            " are the prior's own.",
        ]
    )
    return section(
        "first", "What it would try first", [paragraph(said)], query_cards(queries, prior, order)
    )


def _good(prior: Prior) -> str:
    return "high" if prior.direction == "maximize" else "low"


def _matters(prior: Prior, influence: Influence | None) -> list[Html]:
    if influence is None:
        return []
    said = joined(
        [
            influence_words(influence, prior.quantity.unit),
            " how much of that ",
            linked("variance", "variance"),
            " each dimension explains alone (solid), and with its interactions (pale).",
        ]
    )
    return [
        section("matters", "Which dimensions matter", [paragraph(said)], influence_bars(influence))
    ]


def _beliefs(prior: Prior, slices: list[Slice]) -> Html:
    shown = slices[:MOST_SLICES]
    limits_of_all = limits_of(shown)
    drawn = [
        Figure(
            cut(along.name, 80),
            drawn_slice(along, limits_of_all, label=prior.quantity.label, ident=f"slice-{number}"),
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
    lead = [paragraph(f"{said}."), key_of(BAND)]
    return section("prior", "What it believes", lead, sections.figures(drawn))


def _choices_left_out(along: Slice) -> str:
    choices = getattr(along.dimension, "choices", ())
    return (
        f"The first {MOST_CHOICES} of {len(choices)} choices."
        if len(choices) > MOST_CHOICES
        else ""
    )


def _models(findings: Findings) -> Key:
    return (("learned", "learned prior"), ("baseline", findings.baseline))


def _held_out(prior: Prior, findings: Findings) -> list[Html]:
    held_out = findings.held_out
    if held_out is None:
        return []
    drawn = held_out_figures(held_out, prior.quantity, findings.baseline)
    if not drawn:
        return []
    tasks = (
        "Runs were" if held_out.tasks is None else counted(held_out.tasks, "run was", "runs were")
    )
    folds = f" in {counted(held_out.folds, 'fold')}" if held_out.folds else ""
    said = joined(
        [
            f"{tasks} held out{folds}: each was predicted from its first points by a prior that "
            "had not seen it, and from the same points by the ",
            linked("baseline", findings.baseline),
            ".",
        ]
    )
    lead = [paragraph(said), key_of(_models(findings))]
    return [section("held-out", "Predictions of held-out runs", lead, sections.figures(drawn))]


def _replay(findings: Findings) -> list[Html]:
    curves = replay_curves(findings.replay, findings.baseline) if findings.replay else []
    figure = replay_figure(curves)
    if figure is None:
        return []
    lead = [
        paragraph(
            "Held-out runs, replayed: each model chooses among the points that the run recorded. ",
            linked("regret", "Regret"),
            " is 0 once the best of the run is found.",
        ),
        key_of((*_models(findings), ("recorded", "recorded order of the run"))),
    ]
    beside = element("div", _regrets(curves), class_="beside-figure")
    content = sections.figures([figure], beside)
    return [section("replay", "How many evaluations it saves", lead, content)]


def _regrets(curves: list[PanelCurve]) -> Html:
    """The numbers of the figure, after some of the evaluations."""
    steps = curves[0].x
    shown = sorted({min(2**i, len(steps)) - 1 for i in range(MOST_STEPS)})
    rows = [(f"{steps[i]:g}", *(number(float(curve.y[i]), 2) for curve in curves)) for i in shown]
    header = ("Evaluations", *(curve.name[:1].upper() + curve.name[1:] for curve in curves))
    return table("Mean regret after so many evaluations", header, rows, class_="figured")


def _posteriors(drawn: list[Figure]) -> list[Html]:
    if not drawn:
        return []
    lead = [
        paragraph(
            "Posteriors after the first points of past runs. The prior has learned from these "
            "runs, so expect a slightly worse fit on a new one."
        ),
    ]
    content = sections.figures(drawn, key_of((*BAND, *RUN)))
    return [section("posteriors", "Posteriors on past runs", lead, content)]


def _past_runs(prior: Prior, findings: Findings) -> list[Html]:
    likeness = likeness_of(prior, findings)
    if not findings.tasks and likeness is None:
        return []
    lead = findings_on_runs(findings.tasks) if findings.tasks else []
    return [section("past-runs", "The past runs", lead, past_runs(findings, likeness))]


def _settings(prior: Prior, findings: Findings) -> Html:
    chosen = findings.chosen.settings
    shown = chosen or settings_in_words(prior.contents.settings)
    return section(
        "settings",
        "How it was chosen" if chosen else "How it was learned",
        [sections.effort(findings, method_name(prior.contents.settings))],
        sections.settings(shown),
    )
