"""From a prior and the tensors of a run to what a BoTorch model is made of."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from metaprior.adapters.botorch._coordinates import AbstractCoordinates, UnitCube
from metaprior.adapters.botorch._processes import TorchProcesses
from metaprior.belief import Prior, method_name
from metaprior.data import Features, direction_sign

# Beyond the bounds by this much of a column's range is rounding.
SLACK = 1e-6


def model_inputs(
    prior: Prior,
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    features: Features | None,
    coordinates: AbstractCoordinates | None,
) -> dict[str, Any]:
    """The arguments of `LearnedModel` for a prior and a run; those of `model`."""
    where = UnitCube(prior.space) if coordinates is None else coordinates
    _require_same_space(prior, where)
    _require_no_conditions(prior)
    require_run(train_X, train_Y, train_Yvar)
    where = where.to(train_X)
    require_inside("train_X", train_X, where)
    task = prior if features is None else prior.for_task(features)
    sign = direction_sign(prior.direction)
    x, y = (part.detach().cpu().numpy() for part in (where(train_X), sign * train_Y[:, 0]))
    conditioned = task.belief.condition(x, y)
    frozen = [group.members.frozen() for group in conditioned.groups]
    stacks = [TorchProcesses(part, sign).to(train_X) for part in frozen if part is not None]
    if len(stacks) < len(frozen):
        raise ValueError(
            f"A prior of {method_name(prior.contents.settings)} is no mixture of Gaussian "
            "processes and has no BoTorch model; learn one with `metaprior.learn(tasks)`."
        )
    if train_Yvar is None:
        noises, new_variance = [s.own_noise(train_X.shape[:-1]) for s in stacks], None
    else:
        noises = [stack.given_noise(train_Yvar[:, 0]) for stack in stacks]
        new_variance = train_Yvar.mean() if len(train_Yvar) else None
    return {
        "stacks": stacks,
        "weights": torch.tensor(conditioned.weights).to(train_X),
        "coordinates": where,
        "train_X": train_X,
        "train_Y": train_Y,
        "noises": noises,
        "new_variance": new_variance,
    }


def _require_same_space(prior: Prior, coordinates: AbstractCoordinates) -> None:
    if not coordinates.space.matches(prior.space):
        raise ValueError(
            f"The coordinates are of {coordinates.space}, and the prior is of {prior.space}; make "
            "them with the prior's own `space`."
        )


def _require_no_conditions(prior: Prior) -> None:
    if prior.space.conditions is not None:
        conditional = [
            n for n, d in zip(prior.space.names, prior.space.dimensions, strict=True) if d.when
        ]
        raise ValueError(
            f"Dimension {conditional[0]!r} exists only under a condition, which a BoTorch model "
            "cannot see; use `metaprior.Optimizer(prior)` or Optuna for this prior."
        )


def require_run(
    x: Tensor, y: Tensor, variance: Tensor | None = None, *, prefix: str = "train_"
) -> None:
    """Raise unless the tensors are those of one run.

    - `prefix`: what the names of the tensors begin with.
    """
    others = {f"{prefix}Y": y} | ({} if variance is None else {f"{prefix}Yvar": variance})
    for name, tensor in {f"{prefix}X": x, **others}.items():
        _require_double(name, tensor)
        if tensor.device != x.device:
            raise ValueError(
                f"{name} is on {tensor.device} and {prefix}X on {x.device}; move both to one "
                "device."
            )
    if x.ndim != 2:
        raise ValueError(
            f"{prefix}X has shape {tuple(x.shape)}; give the points of one run, (n, d): a batch of "
            "runs is a model for each of them."
        )
    for name, tensor in others.items():
        if tensor.shape != (len(x), 1):
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}; give ({len(x)}, 1), one value per point: "
                "several outputs are a ModelListGP of models."
            )
    if variance is not None and not bool((variance >= 0.0).all() & variance.isfinite().all()):
        raise ValueError(
            f"{prefix}Yvar has entries that are no variance; give finite numbers >= 0."
        )


def require_points(name: str, x: Tensor, coordinates: AbstractCoordinates, like: Tensor) -> None:
    """Raise unless `x` has points (..., q, d) of the space, as a model takes them.

    - `like`: a tensor of the model.
    """
    _require_double(name, x)
    if x.device != like.device:
        raise ValueError(
            f"{name} is on {x.device} and the model on {like.device}; move both to one device."
        )
    if x.ndim < 2:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; give points as (..., q, d), one point as (1, d)."
        )
    require_inside(name, x, coordinates)


def require_values(name: str, values: Tensor, x: Tensor) -> None:
    """Raise unless there is one value per point (..., q, d)."""
    _require_double(name, values)
    if values.ndim < 2 or values.shape[-2:] != (x.shape[-2], 1):
        raise ValueError(
            f"{name} has shape {tuple(values.shape)} for {x.shape[-2]} points; give "
            f"(..., {x.shape[-2]}, 1), one value per point."
        )
    if not bool(values.isfinite().all()):
        raise ValueError(f"{name} has entries that are not finite; leave these points out.")


def require_no_transform(options: Mapping[str, Any]) -> None:
    """Raise if a host wants to transform what a prior knows the units of."""
    for name in ("outcome_transform", "input_transform"):
        if options.get(name) is not None:
            raise ValueError(
                f"{name} is {type(options[name]).__name__}, and a learned prior takes values and "
                f"points in the units that it was learned in; give {name}=None."
            )


def _require_double(name: str, tensor: Tensor) -> None:
    if tensor.dtype != torch.float64:
        raise TypeError(
            f"{name} is {tensor.dtype}; a learned prior needs double precision: give "
            f"`{name}.double()`."
        )


def require_inside(name: str, x: Tensor, coordinates: AbstractCoordinates) -> None:
    """Raise unless all points (..., d) lie in the space."""
    coordinates.require_width(x, name)
    bounds, kind = coordinates.bounds.to(x), type(coordinates).__name__
    slack = SLACK * (bounds[1] - bounds[0])
    # Not a number is not inside.
    outside = ~((x >= bounds[0] - slack) & (x <= bounds[1] + slack))
    if outside.any():
        *rows, column = outside.nonzero()[0].tolist()
        low, high = bounds[:, column].tolist()
        raise ValueError(
            f"Row {rows[0] if len(rows) == 1 else tuple(rows)} of {name} has "
            f"{float(x[(*rows, column)])} in column {column}, outside [{low:g}, {high:g}] of "
            f"{kind}; make it with `{kind}(prior.space).tensor(points)`, or give other "
            "`coordinates`."
        )
