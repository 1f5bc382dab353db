"""What every number of the page means, with its unit: one line each, at the end of the page."""

from typing import NamedTuple

from metaprior.belief import Prior
from metaprior.data import Quantity
from metaprior.findings import Findings, HeldOutScores, Replay
from metaprior.report._html import Html, element, joined, unbroken
from metaprior.words import number


class Definition(NamedTuple):
    """A term, and what it means; `ident` is what links refer to."""

    ident: str
    term: str
    meaning: str


def linked(ident: str, words: str) -> Html:
    """Words that lead to their definition."""
    return element("a", words, href=f"#means-{ident}")


def spread_in_words(held_out: HeldOutScores, quantity: Quantity) -> str:
    """The unit of errors and log-likelihoods."""
    if held_out.spread is None:
        return "the standard deviation of all past values"
    size = unbroken(quantity.with_unit(number(held_out.spread)))
    return f"the standard deviation of all past values ({size})"


def definitions_for(prior: Prior, findings: Findings) -> list[Definition]:
    """The definitions of all numbers that the page of this prior shows."""
    return [
        *_of_predictions(prior.quantity),
        *(_of_held_out(findings, prior.quantity) if findings.held_out else []),
        *(_of_replay(findings, prior.direction) if findings.replay else []),
        *(_of_runs(findings) if findings.tasks else []),
    ]


def definition_list(definitions: list[Definition]) -> Html:
    entries = (
        element(
            "div",
            element("dt", each.term, id=f"means-{each.ident}"),
            element("dd", each.meaning),
        )
        for each in definitions
    )
    return element("dl", joined(entries), class_="meanings")


def _of_predictions(quantity: Quantity) -> list[Definition]:
    unit = f" In {quantity.unit}." if quantity.unit else ""
    return [
        Definition(
            "band",
            "± and 95 % band",
            "The next observation, noise included, falls inside with a probability of 95 %, if the "
            f"prior is right.{unit}",
        ),
        Definition(
            "chance",
            "chance to beat",
            "Share of functions drawn from the prior whose value at the query is better than at a "
            "query drawn uniformly from the space; for the best of several, than at all of them.",
        ),
        Definition(
            "variance",
            "variance explained",
            "Share of the variance of the prior mean over the space, points being uniform: by a "
            "dimension alone (first-order Sobol index; solid bar), and with all its interactions "
            "(total index; pale bar). Pairs: what two dimensions explain beyond both alone. "
            "Estimated at quasi-random points, to about one percentage point in few dimensions.",
        ),
    ]


def _of_held_out(findings: Findings, quantity: Quantity) -> list[Definition]:
    held_out = findings.held_out or HeldOutScores()
    unit = spread_in_words(held_out, quantity)
    return [
        Definition(
            "baseline",
            findings.baseline,
            "The baseline: a Gaussian process that learns from the points of the run at hand and "
            "does not transfer what past runs had in common. It predicts the same observations "
            "from the same points.",
        ),
        Definition(
            "calibration",
            "calibration error",
            "Root mean squared difference between the confidence level of a band and the share of "
            "held-out observations inside it, over the levels. 0 is perfect, 0.1 means about ten "
            "percentage points off. Interval: 95 %, by drawing runs again (bootstrap), which makes "
            "errors larger on average: it errs on the side of caution.",
        ),
        Definition(
            "coverage",
            "coverage",
            "Share of held-out observations inside the central band of a confidence level.",
        ),
        Definition(
            "likelihood",
            "log-likelihood",
            "Mean log density of the held-out observations, in nats per observation, of values "
            f"divided by {unit}. One nat more is a density 2.7 times as high. Interval: 95 %, over "
            "runs.",
        ),
        Definition(
            "error",
            "root mean squared error",
            "Of the predicted mean at the points of a run that were not given, "
            + (
                f"in units of {unit}."
                if held_out.spread is None
                else f"in {quantity.unit or 'the unit of the value'}; all past values have a "
                f"standard deviation of {unbroken(quantity.with_unit(number(held_out.spread)))}."
            ),
        ),
    ]


def _of_replay(findings: Findings, direction: str) -> list[Definition]:
    runs = (findings.replay or Replay()).runs
    over = f"{runs} held-out runs" if runs else "held-out runs"
    best = "highest" if direction == "maximize" else "lowest"
    return [
        Definition(
            "regret",
            "regret",
            f"Distance of the best value so far from the run's best (its {best}) value, in units "
            "of the distance from the run's median to its best: 0 is the best, 1 the median.",
        ),
        Definition(
            "saved",
            "evaluations saved",
            f"Found by replaying {over}: each model chooses the next point among those that the "
            "run recorded, until its regret is at most 0.05. How many evaluations fewer the "
            f"learned prior needs than the {findings.baseline}, mean per run. Interval: 95 %, over "
            "runs.",
        ),
    ]


def _of_runs(findings: Findings) -> list[Definition]:
    return [
        Definition(
            "outlier",
            "run to check",
            "A run that a prior learned from the others predicts far worse than the typical run: "
            "its log-likelihood is more than four robust standard deviations below the median. "
            f"The {findings.baseline} shows whether the run is hard for any model.",
        ),
    ]
