"""From what the files of a prior hold to a belief: settings, and arrays by name.

Arrays are named by the path of their field, as the file of arrays has them.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from metaprior.belief._arrays import StackedArrays
from metaprior.belief._averaged import AveragedBelief
from metaprior.belief._belief import AbstractBelief
from metaprior.belief._conditioned import ConditionedProcesses
from metaprior.belief._fitted import FittedBelief
from metaprior.belief._guard import GuardedBelief, GuardSettings
from metaprior.belief._kernels import StackedSquaredExponential
from metaprior.belief._learned import ProcessBelief, SelfStandardisedBelief
from metaprior.belief._linalg import JITTER
from metaprior.belief._linear import LearnedFeatures, LinearBelief
from metaprior.belief._maps import AbstractMap, StackedConstant, StackedWarp, Unchanged
from metaprior.belief._past import PastMeans, past_members
from metaprior.belief._processes import EmbeddedPoints, GaussianProcesses
from metaprior.belief._random import key_of, single_precision_normal
from metaprior.belief._rank_weighted import RankWeightedBelief
from metaprior.belief._read_kernel import (
    has_stacked_kernel,
    kernel_paths,
    read_kernel,
    read_scaled_kernel,
)
from metaprior.belief._refine import LogSpread
from metaprior.belief._residual import with_every_residual
from metaprior.belief._settings import Settings, are_complete
from metaprior.belief._weighed import Part, WeighedBelief


def belief_of(
    settings: Settings, arrays: Mapping[str, np.ndarray], num_columns: int
) -> AbstractBelief | None:
    """The belief that a prior's files hold; `None` if the method has no form in NumPy, or if its
    settings are not what this version of metaprior writes.

    - `settings`: of the method, its name among them: `"method"` in `prior.json`.
    - `arrays`: of the surrogate, by path, and no others.
    - `num_columns`: `num_inputs` of the space.
    """
    if not has_belief(settings):
        return None
    stacked = StackedArrays({path: np.asarray(array)[None] for path, array in arrays.items()})
    belief = _BUILDERS[settings["name"]](settings, stacked, num_columns)
    stacked.require_none_left()
    return belief


def stacked_belief(
    settings: Settings, arrays: Mapping[str, np.ndarray], num_columns: int
) -> AbstractBelief:
    """Priors of one gradient-trained method that has a form in NumPy, as one belief: its members
    are those of the first prior, then those of the second, and so on.

    - `arrays`: with a leading axis that counts the priors.
    """
    stacked = StackedArrays(dict(arrays))
    belief = _BUILDERS[settings["name"]](settings, stacked, num_columns)
    stacked.require_none_left()
    return belief


def has_belief(settings: Settings) -> bool:
    """Whether a method, and the one inside it if there is one, has a form in NumPy."""
    inner, kernel = settings.get("base"), settings.get("kernel")
    if settings["name"] == "FittedGP" and kernel is not None:
        # Its derivatives by the lengthscales, which are fitted to the run, are not there.
        return False
    is_known = are_complete(settings) and has_stacked_kernel(kernel)
    if settings["name"] == "Weighed":
        is_known = is_known and inner is not None and is_weighable(inner)
    return is_known and (inner is None or has_belief(inner))


def is_weighable(settings: Settings) -> bool:
    """Whether what a method learns are Gaussian processes, whose evidence can be compared."""
    inner = settings["base"] if settings["name"] == "Ensemble" else settings
    return inner["name"] in {"FPacohMap", "FPacohVI", "LearnedGP", "PacohMap"}


class _Effects(NamedTuple):
    """How tasks differ, and the curves of the inputs."""

    warp: AbstractMap
    offset_variance: Float[np.ndarray, " g"]
    amplitude_variance: Float[np.ndarray, " g"]


def _with_effects(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    """F-PACOH-MAP."""
    process = arrays.under(".process")
    tail, skew = (process.take(f".warp.{name}", num_columns) for name in ("log_tail", "skew"))
    is_on = process.take(".warp.is_on", dtype=bool)
    warp = StackedWarp(tail, skew, is_on) if is_on.any() else Unchanged()
    offset, amplitude = (
        np.where(
            process.take(f".has_{name}", dtype=bool),
            np.exp(process.take(f".log_{name}_variance")),
            0.0,
        )
        for name in ("offset", "amplitude")
    )
    plain = process.under(".plain")
    process.require_none_left()
    effects = _Effects(warp, offset, amplitude)
    return _process_belief(settings, plain, arrays, num_columns, effects)


def _without_effects(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    """PACOH-MAP, learned GP and fixed GP."""
    return _process_belief(settings, arrays.under(".process"), arrays, num_columns)


def _hyper_posterior(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    r"""F-PACOH-VI: the processes $\mu + s\, \epsilon$ for a fixed set of normals $\epsilon$."""
    num, log_std = settings["num_priors"], arrays.take(".hyper_posterior.log_std", None)
    half = single_precision_normal(key_of(0), ((num + 1) // 2, log_std.shape[1]))
    normals = np.concatenate([half, -half])[:num]
    mean = arrays.under(".hyper_posterior.mean")
    paths = [
        *mean.layer_paths(".mean.network"),
        *kernel_paths(settings.get("kernel"), ".kernel.base"),
        *mean.layer_paths(".kernel.features"),
        ".log_noise_variance",
    ]
    drawn = mean.shifted(paths, np.exp(log_std)[:, None, :] * normals[None])
    return _process_belief(settings, drawn, arrays.repeated(num), num_columns)


def _process_belief(
    settings: Settings,
    process: StackedArrays,
    units: StackedArrays,
    num_columns: int,
    effects: _Effects | None = None,
) -> ProcessBelief:
    """Processes in the units of past runs; both sets of arrays are used up."""
    noise_variance = np.exp(process.take(".log_noise_variance"))
    x_units = _x_units(units, num_columns)
    return ProcessBelief(
        _gaussian_processes(settings, process, *x_units, effects),
        noise_variance,
        _spread(units),
        *_y_units(units),
    )


def _gaussian_processes(
    settings: Settings,
    process: StackedArrays,
    x_mean: Float[np.ndarray, "g d"],
    x_std: Float[np.ndarray, "g d"],
    effects: _Effects | None = None,
) -> GaussianProcesses:
    num_columns, kernel = x_mean.shape[1], settings.get("kernel")
    if process.has(".mean.value"):
        mean, features = StackedConstant(process.take(".mean.value")), Unchanged()
        # A kernel that is learned has its own scales; around a fixed one they are set.
        read = read_kernel if settings["name"] == "LearnedGP" else read_scaled_kernel
        own_kernel = read(kernel, process, ".kernel", num_columns)
    else:
        mean = process.network(".mean.network", num_columns, 1)
        features = process.network(".kernel.features", num_columns, None)
        own_kernel = read_kernel(kernel, process, ".kernel.base", features.num_outputs)
    process.require_none_left()
    nothing = np.zeros(len(x_mean))
    return GaussianProcesses(
        x_mean,
        x_std,
        Unchanged() if effects is None else effects.warp,
        mean,
        features,
        own_kernel,
        nothing if effects is None else effects.offset_variance,
        nothing if effects is None else effects.amplitude_variance,
    )


def _linear(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    """ABLR."""
    network = arrays.network(".model.network", num_columns, None, ends_bent=True)
    weight_precision = np.exp(arrays.take(".model.log_weight_precision"))
    noise_precision = np.exp(arrays.take(".model.log_noise_precision"))
    return LinearBelief(
        LearnedFeatures(*_x_units(arrays, num_columns), network),
        1.0 / weight_precision,
        1.0 / noise_precision,
        _spread(arrays),
        *_y_units(arrays),
    )


def _self_standardised(
    settings: Settings, arrays: StackedArrays, num_columns: int
) -> AbstractBelief:
    process, ones = arrays.under(".process"), np.ones((1, num_columns))
    noise_variance = np.exp(process.take(".log_noise_variance"))
    # Inputs are scaled as a uniform distribution on the unit cube would be.
    units = 0.5 * ones, np.sqrt(1.0 / 12.0) * ones
    processes = _gaussian_processes(settings, process, *units)
    return SelfStandardisedBelief(processes, noise_variance)


def _fitted(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    return FittedBelief(settings["num_steps"])


def _averaged(settings: Settings, arrays: StackedArrays, num_columns: int) -> AveragedBelief:
    (y_mean,), (y_std,) = arrays.take(".y_mean"), arrays.take(".y_std")
    return AveragedBelief(float(y_mean), float(y_std))


def _ensemble(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    members = arrays.under(".members").members()
    members.require_members(settings["members"])
    base = settings["base"]
    belief = _BUILDERS[base["name"]](base, members, num_columns)
    members.require_none_left()
    return belief


def _guarded(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    learned, base = arrays.under(".learned"), settings["base"]
    belief = _BUILDERS[base["name"]](base, learned, num_columns)
    learned.require_none_left()
    return _guard(settings, _averaged(settings, arrays, num_columns), belief)


def guard_around(
    settings: Settings, arrays: Mapping[str, np.ndarray], learned: AbstractBelief
) -> GuardedBelief:
    """`learned` behind the guard of `Guarded` with these settings and arrays."""
    y_mean, y_std = float(arrays[".y_mean"]), float(arrays[".y_std"])
    return _guard(settings, AveragedBelief(y_mean, y_std), learned)


def _guard(settings: Settings, averaged: AveragedBelief, learned: AbstractBelief) -> GuardedBelief:
    guard = GuardSettings(*(settings[name] for name in GuardSettings._fields))
    thresholds = 0.0 < guard.nothing_below <= guard.all_above <= guard.prior_trust < 1.0
    if not thresholds or guard.temperature < 0.0:
        raise ValueError(f"there is no guard with {guard}")
    return GuardedBelief(learned, averaged, guard)


def _weighed(settings: Settings, arrays: StackedArrays, num_columns: int) -> WeighedBelief:
    inside, base = arrays.under(".learned"), settings["base"]
    learned = _BUILDERS[base["name"]](base, inside, num_columns)
    inside.require_none_left()
    past = arrays.under(".past").members()
    # What single past tasks say does not depend on features of tasks: they may have fewer columns.
    x = past.take(".x", None, None)
    length = x.shape[1]
    means = PastMeans(
        x,
        past.take(".alpha", length),
        past.take(".constant"),
        past.take(".lengthscale", x.shape[2]),
        past.take(".variance"),
        past.take(".level"),
        past.take(".unit"),
    )
    past.require_none_left()
    if settings["past_weight"] > 0.0 and not len(x):
        raise ValueError(".past.x has no past runs where they have weight")
    # `has_belief` lets no other kind of method through.
    assert isinstance(learned, ProcessBelief)
    averaged = _averaged(settings, arrays, num_columns)
    past_weight, averaged_weight = settings["past_weight"], settings["averaged_weight"]
    if not (past_weight >= 0.0 < averaged_weight and settings["temper"] > 0.0):
        raise ValueError(f"the weights {past_weight} and {averaged_weight} are impossible")
    if not past_weight + averaged_weight < 1.0:
        raise ValueError(f"the weights {past_weight} and {averaged_weight} leave nothing")
    learned_weight, residuals = 1.0 - past_weight - averaged_weight, with_every_residual(learned)
    parts = [Part(residuals, learned_weight, has_past=True, sees_features=True)]
    if past_weight > 0.0:  # else there may be no past runs
        parts.append(Part(past_members(means), past_weight, has_past=True))
    parts.append(Part(averaged, averaged_weight, has_past=False))
    guarded = GuardedBelief(learned, averaged, GuardSettings())
    return WeighedBelief(tuple(parts), settings["temper"], guarded)


def _rank_weighted(settings: Settings, arrays: StackedArrays, num_columns: int) -> AbstractBelief:
    past = arrays.under(".past").members()
    embedded = past.take(".embedded", None, num_columns)
    num, length = embedded.shape[:2]
    mask = past.take(".mask", length, dtype=bool)
    basis = past.take(".inverse_factor", length, length)
    whitened = past.take(".whitened", length)
    past.take(".log_evidence")
    process = past.under(".process")
    noise_variance = np.exp(process.take(".log_noise_variance"))
    lengthscale = np.exp(process.take(".kernel.log_lengthscale", num_columns))
    kernel = StackedSquaredExponential(lengthscale, np.exp(process.take(".kernel.log_variance")))
    mean = process.take(".mean.value")
    process.require_none_left()
    nothing = np.zeros(num)
    processes = GaussianProcesses(
        np.zeros((num, num_columns)),
        np.ones((num, num_columns)),
        Unchanged(),
        StackedConstant(mean),
        Unchanged(),
        kernel,
        nothing,
        nothing,
    )
    past.require_none_left()
    # Rows that are padding say nothing of any point.
    basis = np.where(mask[:, None, :], basis, 0.0)
    ones = np.ones((num, 1))
    conditioned = ConditionedProcesses(
        processes,
        EmbeddedPoints(np.zeros((num, length)), lengthscale[:, None, :] * embedded),
        basis,
        np.ones((num, 1, length)),
        np.einsum("gmn,gm->gn", basis, whitened)[:, None],
        ones,
        noise_variance[:, None],
        np.full((num, 1), JITTER),
        nothing,
        np.ones(num),
    )
    (y_mean,), (y_std,) = arrays.take(".y_mean"), arrays.take(".y_std")
    (discard_quantile,) = arrays.take(".discard_quantile")
    return RankWeightedBelief(
        conditioned,
        np.asarray(mask.any(axis=1)),
        float(y_mean),
        float(y_std),
        arrays.take(".key_data", 2, dtype=np.uint32)[0],
        float(discard_quantile),
        settings["num_steps"],
        settings["num_samples"],
    )


def _x_units(arrays: StackedArrays, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    mean = arrays.take(".standardiser.x_mean", num_columns)
    return mean, arrays.take(".standardiser.x_std", num_columns)


def _y_units(arrays: StackedArrays) -> tuple[np.ndarray, np.ndarray]:
    return arrays.take(".standardiser.y_mean"), arrays.take(".standardiser.y_std")


def _spread(arrays: StackedArrays) -> LogSpread:
    return LogSpread(arrays.take(".spread.noise"), arrays.take(".spread.scale"))


_BUILDERS: dict[str, Callable[[Settings, StackedArrays, int], AbstractBelief]] = {
    "ABLR": _linear,
    "AveragedGP": _averaged,
    "Ensemble": _ensemble,
    "FPacohMap": _with_effects,
    "FPacohVI": _hyper_posterior,
    "FittedGP": _fitted,
    "FixedGP": _without_effects,
    "Guarded": _guarded,
    "LearnedGP": _without_effects,
    "PacohMap": _without_effects,
    "RankWeightedGP": _rank_weighted,
    "SelfStandardisedGP": _self_standardised,
    "Weighed": _weighed,
}
