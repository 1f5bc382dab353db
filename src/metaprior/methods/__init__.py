"""Methods that learn from past runs, all behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metaprior.methods._ensemble import Ensemble as Ensemble
from metaprior.methods._ensemble import EnsembleSurrogate as EnsembleSurrogate
from metaprior.methods._fitted_gp import FittedGP as FittedGP
from metaprior.methods._fpacoh_map import FPacohMap as FPacohMap
from metaprior.methods._gp_surrogate import GPPosterior as GPPosterior
from metaprior.methods._gp_surrogate import GPSurrogate as GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod as AbstractGradientMethod
from metaprior.methods._gradient import meta_train_each as meta_train_each
from metaprior.methods._gradient import meta_train_many as meta_train_many
from metaprior.methods._guarded import Guarded as Guarded
from metaprior.methods._guarded import GuardedSurrogate as GuardedSurrogate
from metaprior.methods._method import AbstractMethod as AbstractMethod
from metaprior.methods._method import AbstractPosterior as AbstractPosterior
from metaprior.methods._method import AbstractSurrogate as AbstractSurrogate
from metaprior.methods._method import Moments as Moments
from metaprior.methods._method import OnProgress as OnProgress
from metaprior.methods._vanilla_gp import SelfStandardisedGP as SelfStandardisedGP
from metaprior.methods._vanilla_gp import VanillaGP as VanillaGP

if TYPE_CHECKING:
    from metaprior.methods._ablr import ABLR as ABLR
    from metaprior.methods._fpacoh_bnn import FPacohBNN as FPacohBNN
    from metaprior.methods._fpacoh_vi import FPacohVI as FPacohVI
    from metaprior.methods._learned_gp import LearnedGP as LearnedGP
    from metaprior.methods._neural_process import NeuralProcess as NeuralProcess
    from metaprior.methods._pacoh_map import PacohMap as PacohMap
    from metaprior.methods._rank_weighted_gp import RankWeightedGP as RankWeightedGP

# Methods that most people never use: imported on first use.
_LAZY_METHODS = {
    "ABLR": "_ablr",
    "FPacohBNN": "_fpacoh_bnn",
    "FPacohVI": "_fpacoh_vi",
    "LearnedGP": "_learned_gp",
    "NeuralProcess": "_neural_process",
    "PacohMap": "_pacoh_map",
    "RankWeightedGP": "_rank_weighted_gp",
}


def known_methods() -> dict[str, type[AbstractMethod]]:
    """Every method under the name by which files refer to it."""
    always = (FPacohMap, VanillaGP, SelfStandardisedGP, FittedGP, Ensemble, Guarded)
    known: dict[str, type[AbstractMethod]] = {method.__name__: method for method in always}
    return known | {name: __getattr__(name) for name in _LAZY_METHODS}


def __getattr__(name: str) -> Any:
    if name in _LAZY_METHODS:
        return getattr(import_module(f"metaprior.methods.{_LAZY_METHODS[name]}"), name)
    raise AttributeError(f"module 'metaprior.methods' has no attribute {name!r}")
