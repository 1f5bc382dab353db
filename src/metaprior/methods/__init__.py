"""Methods that learn from past runs, all behind one interface."""

from metaprior.methods._ablr import ABLR as ABLR
from metaprior.methods._fitted_gp import FittedGP as FittedGP
from metaprior.methods._fpacoh_map import FPacohMap as FPacohMap
from metaprior.methods._gp_surrogate import GPPosterior as GPPosterior
from metaprior.methods._gp_surrogate import GPSurrogate as GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod as AbstractGradientMethod
from metaprior.methods._gradient import meta_train_many as meta_train_many
from metaprior.methods._learned_gp import LearnedGP as LearnedGP
from metaprior.methods._method import AbstractMethod as AbstractMethod
from metaprior.methods._method import AbstractPosterior as AbstractPosterior
from metaprior.methods._method import AbstractSurrogate as AbstractSurrogate
from metaprior.methods._method import Moments as Moments
from metaprior.methods._method import OnProgress as OnProgress
from metaprior.methods._neural_process import NeuralProcess as NeuralProcess
from metaprior.methods._pacoh_map import PacohMap as PacohMap
from metaprior.methods._rank_weighted_gp import RankWeightedGP as RankWeightedGP
from metaprior.methods._vanilla_gp import VanillaGP as VanillaGP

# The names under which methods are written to files.
KNOWN_METHODS: dict[str, type[AbstractMethod]] = {
    method.__name__: method
    for method in (
        FPacohMap,
        PacohMap,
        ABLR,
        LearnedGP,
        NeuralProcess,
        RankWeightedGP,
        VanillaGP,
        FittedGP,
    )
}
