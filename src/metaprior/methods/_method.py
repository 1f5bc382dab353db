"""The interfaces that hold methods, optimisers and studies together.

Points are single points of the unit cube; `y` is in the units of the runs and maximised.
"""

import abc
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.scipy import stats
from jaxtyping import Array, Float, PRNGKeyArray

from metaprior.data import Run, Tasks
from metaprior.meta import Progress
from metaprior.words import shortened

OnProgress = Callable[[Progress], None]
# Every layer is compiled by itself; a deeper network takes minutes before the first step.
_DEEPEST = 100


def traced(default: float | bool) -> Any:
    """A field of a method that may differ between configurations trained at once.

    It holds a number or a switch; inside compiled code it is an array.
    """
    return field(default=default, metadata={"traced": True})


def require_depth(depth: int) -> None:
    """Make sure that a network with so many hidden layers can be made."""
    if not isinstance(depth, int) or not 1 <= depth <= _DEEPEST:
        raise ValueError(
            f"`depth` is {shortened(depth)}; give a whole number from 1 to {_DEEPEST}."
        )


def is_traced(setting: Field) -> bool:
    """Whether `traced` made the field."""
    return setting.metadata.get("traced", False)


class Moments(NamedTuple):
    """Mean and variance of the function at a point, and the variance of an observation's noise;
    of many points where they were computed under `vmap`."""

    mean: Float[Array, "*points"]
    function_variance: Float[Array, "*points"]
    noise_variance: Float[Array, "*points"]

    @property
    def variance(self) -> Float[Array, "*points"]:
        """Variance of an observation."""
        return self.function_variance + self.noise_variance


class AbstractPosterior(eqx.Module):
    """The belief of a surrogate about one task after a run of zero or more points."""

    @abc.abstractmethod
    def moments(self, x: Float[Array, " d"]) -> Moments:
        """First two moments at `x`."""

    @abc.abstractmethod
    def log_density(self, x: Float[Array, " d"], y: Float[Array, ""]) -> Float[Array, ""]:
        """Log density of observing `y` at `x`."""

    @abc.abstractmethod
    def cdf(self, x: Float[Array, " d"], y: Float[Array, ""]) -> Float[Array, ""]:
        """Probability of observing at most `y` at `x`."""

    @abc.abstractmethod
    def covariance(self, x: Float[Array, "m d"]) -> Float[Array, "m m"]:
        """Joint covariance of the function at the points `x`, without noise; its diagonal is the
        `function_variance` of `moments`."""

    @abc.abstractmethod
    def sample(
        self, x: Float[Array, "m d"], num: int, *, key: PRNGKeyArray
    ) -> Float[Array, "num m"]:
        """Joint samples of the function at the points `x`."""

    @abc.abstractmethod
    def path(
        self, anchors: Float[Array, "m d"], *, key: PRNGKeyArray
    ) -> Callable[[Float[Array, " d"]], Float[Array, ""]]:
        """One function drawn from the posterior, as a smooth function of single points.

        A process known by its finite marginals only is drawn at the `anchors` and interpolated.
        """


class AbstractGaussianPosterior(AbstractPosterior):
    """A posterior that is Gaussian at every point, so that its moments describe it there."""

    def log_density(self, x, y):
        moments = self.moments(x)
        return stats.norm.logpdf(y, moments.mean, jnp.sqrt(moments.variance))

    def cdf(self, x, y):
        moments = self.moments(x)
        return stats.norm.cdf(y, moments.mean, jnp.sqrt(moments.variance))


class AbstractSurrogate(eqx.Module):
    """What a method learned.

    A surrogate may judge itself by the run it is used on and fall back to another model. The
    methods below `condition` are for those; the defaults are those of a surrogate that does not.
    """

    @abc.abstractmethod
    def condition(self, run: Run) -> AbstractPosterior:
        """Belief about the task of `run`; with no points, the learned prior itself."""

    @property
    def judges(self) -> bool:
        """Whether the trust in what was learned depends on the run."""
        return False

    def trust(self, run: Run) -> Float[Array, ""]:
        """Trust in what was learned after `run`, between 0 and 1."""
        return jnp.ones(())

    def settled(self, trust: float) -> "AbstractSurrogate":
        """The surrogate at a known trust, which the run it is conditioned on no longer changes."""
        return self

    @property
    def unguarded(self) -> "AbstractSurrogate":
        """What was learned, without a guard around it."""
        return self

    def guarding(self, learned: "AbstractSurrogate") -> "AbstractSurrogate":
        """`learned` with the guard of this surrogate around it, if it has one."""
        return learned


@dataclass(frozen=True)
class AbstractMethod(abc.ABC):
    """A frozen configuration that turns past runs into a surrogate."""

    @abc.abstractmethod
    def meta_train(
        self, tasks: Tasks, *, key: PRNGKeyArray, on_progress: OnProgress | None = None
    ) -> AbstractSurrogate:
        """Learn from `tasks`."""

    @abc.abstractmethod
    def blank_surrogate(self, num_columns: int) -> AbstractSurrogate:
        """A surrogate of the right structure whose numbers mean nothing yet."""

    @property
    def sees_features(self) -> bool:
        """Whether it learns from features of tasks, given as further columns of all points of a
        run."""
        return False

    @property
    def keeps_points(self) -> bool:
        """Whether points of past runs are among what it learns."""
        return False

    @property
    def takes_steps(self) -> bool:
        """Whether it learns in many steps, which are compiled before the first."""
        return False

    @property
    def trains_in_batches(self) -> bool:
        """Whether `meta_train_each` trains several configurations at once, each for its own
        `num_steps`."""
        return False

    def summary(self) -> str:
        """The configuration on one line: its class, and the settings that are not the defaults."""
        changed = [
            f"{field.name}={_short(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) is not field.default
            and getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def notes(self) -> list[str]:
        """Sentences on what this configuration, chosen by `learn`, says about the past tasks."""
        return []


def _short(value: Any) -> str:
    """A setting in a few characters."""
    if isinstance(value, AbstractMethod):
        return value.summary()
    return f"{value:.3g}" if isinstance(value, float) else shortened(value)
