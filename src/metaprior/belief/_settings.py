"""The settings of methods that have a belief, so that files are checked without importing JAX.

`prior.json` describes a method by its settings. Here they are by name and kind; a test compares
them with the methods' own fields.
"""

from collections.abc import Callable, Mapping
from typing import Any

Settings = Mapping[str, Any]
Kinds = dict[str, Callable[[Any], bool]]
_LARGEST = 1e150


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < _LARGEST


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_switch(value: Any) -> bool:
    return type(value) is bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_kernel(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and "kernel" in value)


def _is_process(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and set(value) == {"process"})


def _is_method(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value


_TRAINING: Kinds = {
    "learning_rate": _is_number,
    "learning_rate_decay": _is_number,
    "weight_decay": _is_number,
    "num_steps": _is_whole,
    "batch_size": _is_whole,
    "noise_log_spread": _is_number,
    "scale_log_spread": _is_number,
}
_FUNCTION_SPACE: Kinds = _TRAINING | {
    "kappa": _is_number,
    "hyper_lengthscale": _is_number,
    "hyper_variance": _is_number,
    "feature_dim": _is_whole,
    "num_measurements": _is_whole,
    "measurements_from_task": _is_whole,
    "measurement_variance": _is_number,
    "hyper_prior": _is_process,
    "score_estimator": _is_text,
    "kernel": _is_kernel,
}
_FIXED: Kinds = {
    "lengthscale": _is_number,
    "variance": _is_number,
    "noise_variance": _is_number,
}

KINDS: dict[str, Kinds] = {
    "ABLR": _TRAINING,
    "AveragedGP": {},
    "Ensemble": {"base": _is_method, "members": _is_whole},
    "FPacohMap": _FUNCTION_SPACE
    | {"offset": _is_switch, "amplitude": _is_switch, "warp": _is_switch},
    "FPacohVI": _FUNCTION_SPACE
    | {"initial_std": _is_number, "num_priors": _is_whole, "num_functions": _is_whole},
    "FittedGP": {"num_steps": _is_whole, "kernel": _is_kernel},
    "FixedGP": _FIXED | {"kernel": _is_kernel},
    "Guarded": {
        "base": _is_method,
        "prior_trust": _is_number,
        "temperature": _is_number,
        "all_above": _is_number,
        "nothing_below": _is_number,
    },
    "LearnedGP": _TRAINING | {"kernel": _is_kernel},
    "PacohMap": _TRAINING
    | {
        "kappa": _is_number,
        "hyper_prior_std": _is_number,
        "feature_dim": _is_whole,
        "kernel": _is_kernel,
    },
    "RankWeightedGP": {
        "num_steps": _is_whole,
        "num_samples": _is_whole,
        "discard_quantile": _is_number,
    },
    "SelfStandardisedGP": _FIXED,
    "Weighed": {
        "base": _is_method,
        "past_weight": _is_number,
        "averaged_weight": _is_number,
        "temper": _is_number,
    },
}


def are_complete(settings: Any) -> bool:
    """Whether `settings` are all of a method's that has a belief, each of its kind.

    Those of a method inside it are not looked at.
    """
    kinds = KINDS.get(settings["name"])
    if kinds is None or settings.keys() != {"name", *kinds}:
        return False
    return all(fits(settings[name]) for name, fits in kinds.items())


def method_name(settings: Settings) -> str:
    """The class of a method, and of those it is made of: `Guarded(FPacohMap)`."""
    inner = [method_name(value) for value in settings.values() if _is_method(value)]
    return settings["name"] + (f"({', '.join(inner)})" if inner else "")
