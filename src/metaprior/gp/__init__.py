"""Gaussian-process algebra: no learning, and no randomness except sampling."""

from metaprior.gp._gaussian import Gaussian as Gaussian
from metaprior.gp._gaussian import Reference as Reference
from metaprior.gp._gaussian import kl_divergence as kl_divergence
from metaprior.gp._gaussian import log_density as log_density
from metaprior.gp._gaussian import reference as reference
from metaprior.gp._gaussian import sample as sample
from metaprior.gp._kernels import AbstractKernel as AbstractKernel
from metaprior.gp._kernels import FeatureKernel as FeatureKernel
from metaprior.gp._kernels import ScaledKernel as ScaledKernel
from metaprior.gp._kernels import SquaredExponential as SquaredExponential
from metaprior.gp._linalg import require_finite as require_finite
from metaprior.gp._means import AbstractMean as AbstractMean
from metaprior.gp._means import ConstantMean as ConstantMean
from metaprior.gp._means import NeuralMean as NeuralMean
from metaprior.gp._posterior import ConditionedProcess as ConditionedProcess
from metaprior.gp._posterior import condition as condition
from metaprior.gp._process import GaussianProcess as GaussianProcess
from metaprior.gp._refine import Spread as Spread
from metaprior.gp._refine import refine as refine
