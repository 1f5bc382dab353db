"""BoTorch: a learned prior as a model, the coordinates of its points, and tensors as tasks."""

# ruff: noqa: E402 (nothing below can be imported without BoTorch)

from metaprior.adapters import require_host

require_host("botorch", called="BoTorch", extra="botorch", oldest=0)

from metaprior.adapters.botorch._build import model as model
from metaprior.adapters.botorch._coordinates import AbstractCoordinates as AbstractCoordinates
from metaprior.adapters.botorch._coordinates import UnitCube as UnitCube
from metaprior.adapters.botorch._coordinates import UserUnits as UserUnits
from metaprior.adapters.botorch._many import ManyObjectives as ManyObjectives
from metaprior.adapters.botorch._model import LearnedModel as LearnedModel
from metaprior.adapters.botorch._tasks import tasks as tasks
