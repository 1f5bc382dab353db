"""Methods that learn from past runs, all behind one interface."""

from metaprior.methods._fitted_gp import FittedGP as FittedGP
from metaprior.methods._fpacoh_map import FPacohMap as FPacohMap
from metaprior.methods._gp_surrogate import GPPosterior as GPPosterior
from metaprior.methods._gp_surrogate import GPSurrogate as GPSurrogate
from metaprior.methods._gradient import AbstractGradientMethod as AbstractGradientMethod
from metaprior.methods._gradient import meta_train_many as meta_train_many
from metaprior.methods._method import AbstractMethod as AbstractMethod
from metaprior.methods._method import AbstractPosterior as AbstractPosterior
from metaprior.methods._method import AbstractSurrogate as AbstractSurrogate
from metaprior.methods._method import Moments as Moments
from metaprior.methods._method import OnProgress as OnProgress
from metaprior.methods._vanilla_gp import VanillaGP as VanillaGP

# The names under which methods are written to files.
KNOWN_METHODS: dict[str, type[AbstractMethod]] = {
    method.__name__: method for method in (FPacohMap, VanillaGP, FittedGP)
}
