"""From a prior and the tensors of a run to a BoTorch model."""

from torch import Tensor

from metaprior.adapters.botorch._coordinates import AbstractCoordinates
from metaprior.adapters.botorch._inputs import model_inputs
from metaprior.adapters.botorch._model import LearnedModel
from metaprior.belief import Prior
from metaprior.data import Features


def model(
    prior: Prior,
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None = None,
    features: Features | None = None,
    *,
    coordinates: AbstractCoordinates | None = None,
) -> LearnedModel:
    """The prior after a run, as a BoTorch model that needs no fitting.

    Mean, variance and covariance are those of `prior.condition`, in the user's units and sign: of a
    prior to minimise, minimise the model's values.

    - `train_X`: points, (n, d), double precision; n may be 0. Columns are those of `coordinates`.
    - `train_Y`: values, (n, 1), in the user's units; never standardise them.
    - `train_Yvar`: variances of the values' noise, (n, 1), in place of the learned one.
    - `features`: features of the task: see `Prior.for_task`.
    - `coordinates`: `UnitCube(prior.space)`, the default, or `UserUnits(prior.space)`.
    """
    inputs = model_inputs(prior, train_X, train_Y, train_Yvar, features, coordinates)
    return LearnedModel(**inputs)
