"""A learned prior as a BoTorch model of one run."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from botorch.posteriors import GPyTorchPosterior
from botorch.utils.datasets import SupervisedDataset
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator import to_linear_operator
from torch import Tensor
from torch.nn import ModuleList

from metaprior.adapters.botorch._coordinates import AbstractCoordinates
from metaprior.adapters.botorch._inputs import (
    model_inputs,
    require_no_transform,
    require_points,
    require_values,
)
from metaprior.adapters.botorch._processes import MemberJoints, TorchConditioned, TorchProcesses
from metaprior.belief import Prior
from metaprior.data import Features

Transform = Callable[[GPyTorchPosterior, Tensor], Any]


class LearnedModel(GPyTorchModel, FantasizeMixin):
    r"""A mixture of frozen Gaussian processes with exact posteriors; one output, in the user's
    units and sign.

    $$ \mu = \sum_k w_k \mu_k, \qquad
       \Sigma = \sum_k w_k \big( \Sigma_k + (\mu_k - \mu)(\mu_k - \mu)^\top \big) $$

    Made by `model`. A posterior is a `GPyTorchPosterior` with these moments, which are those of
    `metaprior.Prior.condition`. Nothing here is fitted: noise, scale, and the weights $w_k$ stay at
    what the training data of `model` made of them, also after `condition_on_observations` and
    `fantasize`.

    - `num_outputs` is 1; several outputs are a `ModelListGP` of models.
    """

    _num_outputs = 1
    coordinates: AbstractCoordinates
    weights: Tensor
    new_variance: Tensor | None
    train_X: Tensor
    train_Y: Tensor

    def __init__(
        self,
        stacks: Sequence[TorchProcesses],
        weights: Tensor,
        coordinates: AbstractCoordinates,
        train_X: Tensor,
        train_Y: Tensor,
        noises: Sequence[Tensor],
        new_variance: Tensor | None,
    ):
        """
        - `weights`: of the members of all `stacks`, shape (K,).
        - `coordinates`: brings points to the unit cube.
        - `noises`: noise variances of the observations under the members of each stack.
        - `new_variance`: noise variance of an observation to come; `None` for the learned one.
        """
        super().__init__()
        self.coordinates = coordinates
        self.register_buffer("weights", weights)
        self.register_buffer("new_variance", new_variance)
        self.register_buffer("train_X", train_X, persistent=False)
        self.register_buffer("train_Y", train_Y, persistent=False)
        for i, noise in enumerate(noises):
            self.register_buffer(f"noise_{i}", noise, persistent=False)
        self._condition(stacks)
        # Lists of models ask every model for a likelihood, by which they know its noise.
        self.likelihood = GaussianLikelihood(noise_constraint=Positive()).to(train_X)
        self.likelihood.noise = self.noise_variance.detach()
        self.likelihood.requires_grad_(False)
        self.register_load_state_dict_post_hook(_condition_anew)
        self.eval()

    def _condition(self, stacks: Sequence[TorchProcesses]) -> None:
        """Condition every stack on the run, after its numbers were made or loaded."""
        x, y = self.coordinates(self.train_X), self.train_targets
        noises = [getattr(self, f"noise_{i}") for i in range(len(stacks))]
        run = zip(stacks, noises, strict=True)
        self.conditioned = ModuleList(TorchConditioned(s, x, y, noise) for s, noise in run)

    @classmethod
    def construct_inputs(
        cls,
        training_data: SupervisedDataset,
        *,
        prior: Prior,
        features: Features | None = None,
        coordinates: AbstractCoordinates | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Arguments of this class for a data set, as hosts that build models ask for them.

        - `prior`, `features`, `coordinates`: those of `model`. Transforms of values or points are
          refused; other options do not matter here.
        """
        require_no_transform(options)
        data = training_data
        return model_inputs(prior, data.X, data.Y, data.Yvar, features, coordinates)

    @property
    def _stacks(self) -> list[TorchProcesses]:
        return [part.processes for part in self.conditioned]

    @property
    def noise_variance(self) -> Tensor:
        """Noise variance of an observation to come."""
        if self.new_variance is not None:
            return self.new_variance
        each = [(s.unit**2 * s.noise_variance).squeeze(-1) for s in self._stacks]
        return self.weights @ torch.cat(each)

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The points observed, in a tuple as GPyTorch has them."""
        return (self.train_X,)

    @property
    def train_targets(self) -> Tensor:
        """The values observed, without the axis of outputs."""
        return self.train_Y.squeeze(-1)

    @property
    def batch_shape(self) -> torch.Size:
        """Of runs that are fantasies; that of a run is empty."""
        return torch.broadcast_shapes(self.train_X.shape[:-2], self.train_Y.shape[:-2])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Transform | None = None,
    ) -> Any:
        """Joint posterior of the function at points (..., q, d), or of observations there.

        - `observation_noise`: `True` adds the noise of an observation to come; a tensor
          (..., q, 1), or one that broadcasts, is added as it is.
        """
        _require_first_output(output_indices)
        require_points("X", X, self.coordinates, self.train_X)
        x = self.coordinates(X)
        mean, covariance = self._mixed([part.joints(x) for part in self.conditioned])
        if observation_noise is not False:
            given = isinstance(observation_noise, Tensor)
            noise = observation_noise.squeeze(-1) if given else self.noise_variance
            covariance = covariance + torch.diag_embed(noise.expand(mean.shape))
        # As an operator it is factored where it is sampled from only, with the host's jitter.
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(covariance)))
        return posterior if posterior_transform is None else posterior_transform(posterior, X)

    def _mixed(self, joints: list[MemberJoints]) -> MemberJoints:
        """Mean and covariance of the mixture."""
        means = torch.cat([joint.mean for joint in joints], dim=-2)
        covariances = torch.cat([joint.covariance for joint in joints], dim=-3)
        weights = self.weights[:, None]
        mean = (weights * means).sum(dim=-2)
        covariance = (weights[..., None] * covariances).sum(dim=-3)
        if len(weights) > 1:
            apart = means - mean.unsqueeze(-2)
            covariance = covariance + (weights * apart).mT @ apart
        return MemberJoints(mean, covariance)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> "LearnedModel":
        """The model after more observations, as exact posteriors of the same processes.

        - `X`: (batch, n', d); `Y`: (batch', n', 1), where batch' may have more axes than batch.
        - `noise`: variances of the new observations, as `Y`; by default that of one to come.
        """
        require_points("X", X, self.coordinates, self.train_X)
        require_values("Y", Y, X)
        if noise is not None:
            require_values("noise", noise, X)
        values = Y.squeeze(-1)
        given = noise if noise is not None else self.new_variance
        noises = []
        for i, stack in enumerate(self._stacks):
            if given is None:
                new = stack.own_noise(X.shape[:-1])
            else:
                shape = X.shape[:-1] if noise is None else noise.shape[:-1]
                flat = given if noise is None else noise.squeeze(-1)
                new = stack.given_noise(flat.expand(shape))
            noises.append(_appended(getattr(self, f"noise_{i}"), new, dim=-1))
        return LearnedModel(
            self._stacks,
            self.weights,
            self.coordinates,
            _appended(self.train_X, X, dim=-2),
            _appended(self.train_Y, values.unsqueeze(-1), dim=-2),
            noises,
            self.new_variance,
        )

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> "LearnedModel":
        """`condition_on_observations` with values that have no axis of outputs, as GPyTorch calls
        it."""
        noise = kwargs.pop("noise", None)
        noise = None if noise is None else noise.unsqueeze(-1)
        return self.condition_on_observations(inputs, targets.unsqueeze(-1), noise=noise)

    def subset_output(self, idcs: list[int]) -> "LearnedModel":
        """The model itself: it has one output."""
        _require_first_output(idcs)
        return self


def _condition_anew(model: LearnedModel, _: Any) -> None:
    """What a loaded state is followed by: factors are no part of it."""
    model._condition(model._stacks)


def _require_first_output(indices: list[int] | None) -> None:
    if indices is not None and set(indices) - {0, -1}:
        raise ValueError(
            f"Outputs {list(indices)} were asked of a model with one output; put several models "
            "into a ModelListGP."
        )


def _appended(before: Tensor, new: Tensor, *, dim: int) -> Tensor:
    """Two tensors one after the other along `dim`, -1 or -2, broadcast along the axes of a batch.

    The last two axes are no batch.
    """
    batch = torch.broadcast_shapes(before.shape[:-2], new.shape[:-2])
    return torch.cat(
        [before.expand(*batch, *before.shape[-2:]), new.expand(*batch, *new.shape[-2:])], dim=dim
    )
