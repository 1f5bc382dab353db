"""A learned prior and its posterior, in the user's units."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief, ConditionedBelief, SeenThrough
from metaprior.belief._contents import AbstractContents, SavedContents
from metaprior.belief._known_features import seen_beside
from metaprior.belief._linalg import require_finite
from metaprior.belief._settings import method_name
from metaprior.belief._view import embedding_view
from metaprior.data import (
    LARGEST_VALUE,
    Features,
    Points,
    Quantity,
    Space,
    TaskFeatures,
    as_native,
    direction_sign,
)
from metaprior.findings import Findings
from metaprior.words import Summary, counted, listed, shortened

if TYPE_CHECKING:
    from metaprior.methods import AbstractMethod, AbstractSurrogate
    from metaprior.plots import Figure
else:  # importing methods imports JAX; figures are an extra
    AbstractMethod = AbstractSurrogate = Figure = Any

# Half the width of a central 95 % interval of a Gaussian, in standard deviations.
HALF_WIDTH_95 = 1.959963984540054


@dataclass(frozen=True)
class Prior:
    """A prior over functions, learned from past runs.

    - `space`, `direction`: of the runs it was learned from, and of the runs it can be used on.
    - `contents`: what was learned, and by which method: `metaprior.methods.TrainedContents`, or
      what the files of a prior hold.
    - `history`: terms of the training objective, one value per step; for an ensemble, one row per
      member.
    - `trained_on`: what it was learned from, for the model card.
    - `findings`: what was measured on held-out runs; `None` if nothing was.
    - `features`: those of the tasks that it was learned from.
    - `value_bounds`: what a value is never below and never above, in the user's sign.
    - `task`: features of the task that it is asked about: see `for_task`.
    - `quantity`: what the value is called, and its unit.
    """

    space: Space
    direction: str
    contents: AbstractContents = field(repr=False)
    history: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    trained_on: dict[str, Any] = field(default_factory=dict)
    findings: Findings | None = field(default=None, repr=False)
    features: TaskFeatures = TaskFeatures()
    value_bounds: tuple[float, float] | None = None
    task: Features = field(default_factory=dict)
    quantity: Quantity = Quantity()

    @property
    def method(self) -> AbstractMethod:
        """The configuration that learned it."""
        return self.contents.method

    @property
    def surrogate(self) -> AbstractSurrogate:
        """What was learned, for compiled code; a point has the columns of the space, and after
        them those of `features`."""
        return self.contents.surrogate

    @cached_property
    def belief(self) -> AbstractBelief:
        """What was learned, over the unit cube and in NumPy: what `condition` and `Optimizer`
        ask."""
        space, features = self.space, self.features
        belief = self.contents.belief(space.num_inputs + features.num_columns)
        if features.num_columns:
            known = features.code(self.task)
            belief = seen_beside(belief, space.num_coded, known, space.num_added)
        if space.is_embedded:
            belief = SeenThrough(belief, embedding_view(space))
        return belief

    def for_task(self, features: Features) -> "Prior":
        """The prior for a task of which `features` are known, by name.

        A feature that is left out, and a text that no past task had, count as the mean of the past
        tasks.
        """
        self.features.code(features)  # raises for what the prior does not know
        known = {name: value for name, value in features.items() if value is not None}
        return self if known == self.task else replace(self, task=known)

    def condition(
        self, points: Points, values: Iterable[Any], *, features: Features | None = None
    ) -> "Posterior":
        """The posterior after observing `values` at `points`; empty lists give the prior itself.

        - `features`: features of the task: see `for_task`.
        """
        prior = self if features is None else self.for_task(features)
        x = self.space.encode(points)
        y = oriented_values(values, len(x), self.direction)
        return Posterior(prior, prior.belief.condition(x, y))

    def within_bounds(self, values: Float[np.ndarray, "*k"]) -> Float[np.ndarray, "*k"]:
        """Predicted values, none of them beyond `value_bounds`."""
        return values if self.value_bounds is None else np.clip(values, *self.value_bounds)

    def __getstate__(self) -> dict[str, Any]:
        """What its files hold: compiled functions cannot be sent to another process."""
        state = {name: value for name, value in self.__dict__.items() if name != "belief"}
        num_columns = self.space.num_inputs + self.features.num_columns
        contents = SavedContents(self.contents.settings, self.contents.arrays, num_columns)
        return state | {"contents": contents}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Prior":
        """Itself, since it never changes: hosts copy their settings deeply, again and again."""
        return self

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def plot(self, point: Mapping[str, Any] | None = None) -> Figure:
        """A matplotlib figure of the prior: mean and 95 % band of an observation along each
        dimension, the widest range of the mean first. Needs the extra `plots`.

        - `point`: where the slices meet; by default the middle of every dimension, and the first
          choice of a categorical one. What it leaves out is there, too.
        """
        from metaprior.plots import (
            MOST_SLICES,
            middle_of,
            prior_figure,
            require_matplotlib,
            slices_through,
        )

        require_matplotlib("A figure")
        centre = middle_of(self.space) | dict(point or {})
        unknown = [name for name in centre if name not in self.space.names]
        if unknown:
            raise ValueError(
                f"`point` has {unknown[0]!r}, which is none of the dimensions "
                f"{list(self.space.names)}; leave it out."
            )
        predict = self.condition([], []).mean_and_band
        slices = slices_through(predict, self.space, centre, self.space.names)
        slices = sorted(slices, key=lambda along: -along.influence)[:MOST_SLICES]
        return prior_figure(slices, self.quantity.label)

    def save(self, folder: str | Path) -> Path:
        """Write the prior to a folder: arrays, description, and a model card to read."""
        from metaprior.store import save_prior

        return save_prior(self, folder)

    def _summary(self) -> Summary:
        named = zip(self.space.names, self.space.dimensions, strict=True)
        trained_on = ", ".join(f"{name} {value}" for name, value in self.trained_on.items())
        return Summary(
            f"Prior to {self.direction} {self.quantity.label}",
            [
                ("space", listed([f"{name}={dimension}" for name, dimension in named], 4)),
                ("method", method_name(self.contents.settings)),
                ("trained on", trained_on or "no record"),
                *self._feature_facts(),
                ("held-out findings", "yes" if self.findings else "none"),
            ],
        )

    def _feature_facts(self) -> list[tuple[str, str]]:
        """What there is to say of task features, and of limits of the value."""
        facts = []
        if self.features.names:
            used = listed([f.name for f in self.features.used], 4) or "none is used"
            facts.append(("task features", used))
        if self.task:
            facts.append(("for a task of", ", ".join(f"{k} {v}" for k, v in self.task.items())))
        if self.value_bounds is not None:
            facts.append(("value", "between {:g} and {:g}".format(*self.value_bounds)))
        return facts


@dataclass(frozen=True)
class Posterior:
    """A prior conditioned on a run; everything in the user's units and sign.

    - `belief`: the same over the unit cube, where larger is better.
    """

    prior: Prior
    belief: ConditionedBelief = field(repr=False)

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    @property
    def num_observed(self) -> int:
        """How many observations the run has."""
        return len(self.belief.y)

    def predict(
        self, points: Points, *, noiseless: bool = False
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Mean and standard deviation of an observation at each point; with `noiseless`, of the
        function itself."""
        moments = self.belief.moments(self.prior.space.encode(points))
        variance = moments.function_variance if noiseless else moments.variance
        mean = self._sign * moments.mean
        require_finite(mean, "The predicted mean")
        std = np.sqrt(variance)
        require_finite(std, "The predicted standard deviation")
        return mean, std

    def mean_and_band(
        self, points: Points
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Mean, and lower and upper end of the 95 % band of an observation at each point, within
        the bounds of the value."""
        mean, std = self.predict(points)
        half = HALF_WIDTH_95 * std
        bound = self.prior.within_bounds
        return bound(mean), bound(mean - half), bound(mean + half)

    def band(
        self, points: Points, *, noiseless: bool = False
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Lower and upper end of the 95 % band at each point, within the bounds of the value."""
        mean, std = self.predict(points, noiseless=noiseless)
        lower, upper = mean - HALF_WIDTH_95 * std, mean + HALF_WIDTH_95 * std
        return self.prior.within_bounds(lower), self.prior.within_bounds(upper)

    def log_density(self, points: Points, values: Iterable[Any]) -> Float[np.ndarray, " m"]:
        """Log density of observing each value at its point."""
        return self.belief.log_density(*self._observations(points, values))

    def cdf(self, points: Points, values: Iterable[Any]) -> Float[np.ndarray, " m"]:
        """Probability of observing at most each value at its point."""
        below = self.belief.cdf(*self._observations(points, values))
        return below if self._sign > 0 else 1.0 - below

    def sample(self, points: Points, num: int, *, seed: int) -> Float[np.ndarray, "num m"]:
        """Joint samples of the function at the points."""
        x = self.prior.space.encode(points)
        return self._sign * self.belief.sample(x, num, np.random.default_rng(seed))

    def covariance(self, points: Points) -> Float[np.ndarray, "m m"]:
        """Joint covariance of the function at the points, without noise."""
        covariance = self.belief.covariance(self.prior.space.encode(points))
        require_finite(covariance, "The covariance")
        return covariance

    def _summary(self) -> Summary:
        names = listed(list(self.prior.space.names), 8)
        return Summary(
            f"Posterior after {counted(self.num_observed, 'observation')}",
            [("space", names), ("method", method_name(self.prior.contents.settings))],
        )

    @property
    def _sign(self) -> float:
        return direction_sign(self.prior.direction)

    def _observations(
        self, points: Points, values: Iterable[Any]
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
        x = self.prior.space.encode(points)
        return x, oriented_values(values, len(x), self.prior.direction)


def oriented_values(values: Iterable[Any], count: int, direction: str) -> Float[np.ndarray, " m"]:
    """Observed values as a checked array in which larger is better."""
    raw = values if isinstance(values, np.ndarray) else np.array(list(values), object)
    if raw.dtype.kind not in "iuf":
        for row, value in enumerate(raw.reshape(-1).tolist()):
            if isinstance(as_native(value), (bool, str, bytes)):
                raise ValueError(
                    f"The value in row {row} is {shortened(value)}, which is not a number; give "
                    "numbers."
                )
    try:
        y = np.asarray(raw, float).reshape(-1)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(
            f"The values {shortened(values)} are not all numbers; give one finite number per point."
        ) from None
    if len(y) != count:
        raise ValueError(f"Got {count} points but {len(y)} values; give one value per point.")
    bad = np.flatnonzero(~(np.abs(y) <= LARGEST_VALUE))
    if len(bad):
        raise ValueError(
            f"The value in row {bad[0]} is {y[bad[0]]}; drop the row, or fix it, before "
            "conditioning on it."
        )
    return direction_sign(direction) * y
