"""Findings: what was measured on held-out runs while a prior was learned.

One record for everyone: `findings_of` fills it in, `prior.json` keeps it, and the model card, the
report, the commands and lifelong learning read it. A field is stored under its own name.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from metaprior.findings._from_json import read_record

# The non-transfer Gaussian process that a prior is compared with.
BASELINE = "averaged GP"
NOT_MEASURED = (
    "This prior was learned with a fixed method and nothing was held out: how well it does on new "
    "tasks was not measured."
)
INTERRUPTED = "Learning was interrupted: this is the best prior found until then."

# One number per context size, confidence level or step; `None` where it was not measured.
Series = tuple[float | None, ...]


@dataclass(frozen=True)
class PredictionScores:
    """How well one model predicted held-out runs; empty or `None` where it made no prediction.

    - `coverage`: share of observations inside the central band, per confidence level.
    - `calibration_error`: root mean squared difference of coverage and confidence level;
      `calibration_interval`: 95 %, by drawing runs again.
    - `log_likelihood`: nats per observation, of values divided by `HeldOutScores.spread`;
      `log_likelihood_interval`: 95 %, over runs.
    - `error_by_context`: root mean squared error, of values divided likewise.
    """

    coverage: Series = ()
    calibration_error: float | None = None
    calibration_interval: tuple[float, float] | None = None
    log_likelihood: float | None = None
    log_likelihood_interval: tuple[float, float] | None = None
    log_likelihood_by_context: Series = ()
    error_by_context: Series = ()


@dataclass(frozen=True)
class HeldOutScores:
    """The learned prior and the baseline, on the same held-out observations from the same points.

    - `folds`, `tasks`: number of folds, and of runs that were predicted.
    - `contexts`: numbers of points seen before predicting the rest of a run.
    - `levels`: confidence levels at which the coverage was measured.
    - `spread`: standard deviation of all past values, the unit of log-likelihoods and errors.
    """

    folds: int | None = None
    tasks: int | None = None
    contexts: tuple[int, ...] = ()
    levels: tuple[float, ...] = ()
    learned: PredictionScores = PredictionScores()
    baseline: PredictionScores = PredictionScores()
    spread: float | None = None

    def __post_init__(self):
        for name in ("learned", "baseline"):
            scores = getattr(self, name)
            _require_one_per(self.levels, scores, f"held_out.{name}", "coverage")
            by_context = ("log_likelihood_by_context", "error_by_context")
            _require_one_per(self.contexts, scores, f"held_out.{name}", *by_context)


@dataclass(frozen=True)
class Replay:
    """Regret of the best value so far when held-out runs are replayed from their own points.

    - `learned`, `baseline`, `recorded`: mean regret after each of `steps`, by what chose points.
    - `saved_evaluations`: mean per run, relative to the baseline, with a 95 % interval over runs.
    """

    steps: tuple[int, ...] = ()
    learned: Series = ()
    baseline: Series = ()
    recorded: Series = ()
    runs: int | None = None
    saved_evaluations: float | None = None
    saved_interval: tuple[float, float] | None = None

    def __post_init__(self):
        _require_one_per(self.steps, self, "replay", "learned", "baseline", "recorded")


@dataclass(frozen=True)
class StoppingCalibration:
    """How often the best of held-out runs was near enough to the optimum, where the belief stated
    that with some probability.

    - `stated`: probabilities, in ascending order; `happened`: how often it then was so, which never
      falls.
    - `outcomes`: the number of statements compared; `runs`: of how many runs.
    """

    stated: tuple[float, ...]
    happened: tuple[float, ...]
    outcomes: int
    runs: int

    def __post_init__(self):
        _require_one_per(self.stated, self, "stopping", "happened")
        if not self.stated or not self.happened:
            raise ValueError("'findings.stopping' is empty")
        ascending = list(self.stated) == sorted(set(self.stated))
        rising = list(self.happened) == sorted(self.happened)
        if not (ascending and rising and all(0 <= p <= 1 for p in self.happened)):
            raise ValueError("'findings.stopping' is not a rising curve of probabilities")

    def __call__(self, stated: float) -> float:
        """The probability that follows from a stated one: linear in between."""
        places = zip(self.stated, self.happened, strict=True)
        below, value = self.stated[0], self.happened[0]
        for place, there in places:
            if stated <= place:
                share = (stated - below) / (place - below) if place > below else 1.0
                return value + max(share, 0.0) * (there - value)
            below, value = place, there
        return value


@dataclass(frozen=True)
class PastTask:
    """One past run, predicted from the others.

    - `task`: its position among the user's runs; `name`: what the user calls it.
    """

    task: int
    points: int | None = None
    log_likelihood: float | None = None
    baseline_log_likelihood: float | None = None
    outlier: bool = False
    name: str | None = None

    @property
    def label(self) -> str:
        """What the user calls the run; else its place among the runs, counted from 1."""
        return f"run {self.task + 1}" if self.name is None else self.name


@dataclass(frozen=True)
class Example:
    """A held-out run in the user's units, in the order in which it was recorded.

    - `features`: what was known of the task.
    - `name`: what the user calls the run.
    """

    points: tuple[dict[str, Any], ...] = ()
    values: tuple[float, ...] = ()
    features: dict[str, Any] = field(default_factory=dict)
    name: str | None = None

    def __post_init__(self):
        _require_one_per(self.points, self, "examples", "values")


@dataclass(frozen=True)
class Chosen:
    """The configuration that won the race: its settings, training steps and ensemble members."""

    settings: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    members: int | None = None


@dataclass(frozen=True)
class Findings:
    """Everything that was measured; empty or `None` where nothing was.

    - `verdict`: whether to trust the prior, in a sentence or two.
    - `baseline`: the non-transfer model that it is compared with.
    - `stopping`: how the stated probability that a run may stop compares with what happened.
    - `tried`: number of configurations in the race.
    - `seconds`: how long learning took; not in a saved prior, whose bytes follow from the seed.
    - `interrupted`: whether learning was stopped before the race ended.
    """

    verdict: str
    held_out: HeldOutScores | None = None
    replay: Replay | None = None
    tasks: tuple[PastTask, ...] = ()
    examples: tuple[Example, ...] = ()
    chosen: Chosen = Chosen()
    tried: int | None = None
    budget: str | None = None
    seconds: float | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    baseline: str = BASELINE
    stopping: StoppingCalibration | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, after the one on an interruption if there was one."""
        return (INTERRUPTED, *self.notes) if self.interrupted else self.notes

    def without_examples(self) -> "Findings":
        """The record without points and values of past runs."""
        return replace(self, examples=())

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))

    @classmethod
    def from_json(cls, data: Any) -> "Findings":
        """The record that `to_json` wrote; raises a `ValueError` that names what is damaged.

        Missing parts were not measured, and neither were numbers that are not finite.
        """
        return read_record(cls, data, "findings")


# What is known of a prior whose `findings` are `None`.
NOTHING_MEASURED = Findings(NOT_MEASURED)


def _require_one_per(places: tuple[Any, ...], record: Any, where: str, *names: str) -> None:
    """Each of the named series is empty or has one number per place."""
    for name in names:
        series = getattr(record, name)
        if len(series) not in (0, len(places)):
            raise ValueError(
                f"'findings.{where}.{name}' has {len(series)} numbers where {len(places)} should be"
            )
