"""Methods that learn from past runs, all behind one interface."""

from typing import TYPE_CHECKING, Any

from metaprior.methods._compiled_belief import compiled_belief as compiled_belief
from metaprior.methods._ensemble import EnsembleSurrogate as EnsembleSurrogate
from metaprior.methods._gp_surrogate import GPPosterior as GPPosterior
from metaprior.methods._gp_surrogate import GPSurrogate as GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod as AbstractGradientMethod
from metaprior.methods._gradient import can_train_together as can_train_together
from metaprior.methods._gradient import meta_train_at as meta_train_at
from metaprior.methods._gradient import meta_train_each as meta_train_each
from metaprior.methods._gradient import meta_train_many as meta_train_many
from metaprior.methods._gradient import start_trainings as start_trainings
from metaprior.methods._gradient import surrogates_of as surrogates_of
from metaprior.methods._guarded import GuardedSurrogate as GuardedSurrogate
from metaprior.methods._method import AbstractGaussianPosterior as AbstractGaussianPosterior
from metaprior.methods._method import AbstractMethod as AbstractMethod
from metaprior.methods._method import AbstractPosterior as AbstractPosterior
from metaprior.methods._method import AbstractSurrogate as AbstractSurrogate
from metaprior.methods._method import Moments as Moments
from metaprior.methods._method import OnProgress as OnProgress
from metaprior.methods._method import is_traced as is_traced
from metaprior.methods._method import traced as traced
from metaprior.methods._registry import OWN_METHODS, own_method
from metaprior.methods._registry import UnknownMethodError as UnknownMethodError
from metaprior.methods._registry import known_methods as known_methods
from metaprior.methods._registry import register as register
from metaprior.methods._settings import method_of as method_of
from metaprior.methods._settings import settings_of as settings_of
from metaprior.methods._trained import TrainedContents as TrainedContents
from metaprior.methods._trained import filled_surrogate as filled_surrogate

if TYPE_CHECKING:
    from metaprior.methods._ablr import ABLR as ABLR
    from metaprior.methods._averaged_gp import AveragedGP as AveragedGP
    from metaprior.methods._ensemble import Ensemble as Ensemble
    from metaprior.methods._fitted_gp import FittedGP as FittedGP
    from metaprior.methods._fixed_gp import FixedGP as FixedGP
    from metaprior.methods._fixed_gp import SelfStandardisedGP as SelfStandardisedGP
    from metaprior.methods._fpacoh_bnn import FPacohBNN as FPacohBNN
    from metaprior.methods._fpacoh_map import FPacohMap as FPacohMap
    from metaprior.methods._fpacoh_vi import FPacohVI as FPacohVI
    from metaprior.methods._guarded import Guarded as Guarded
    from metaprior.methods._learned_gp import LearnedGP as LearnedGP
    from metaprior.methods._neural_process import NeuralProcess as NeuralProcess
    from metaprior.methods._pacoh_map import PacohMap as PacohMap
    from metaprior.methods._rank_weighted_gp import RankWeightedGP as RankWeightedGP
    from metaprior.methods._weighed import Weighed as Weighed


def __getattr__(name: str) -> Any:
    if name in OWN_METHODS:
        return own_method(name)
    raise AttributeError(f"module 'metaprior.methods' has no attribute {name!r}")
