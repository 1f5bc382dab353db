"""Stochastic processes that a prior can be pulled towards, and how two of them are compared."""

from metaprior.gp import AbstractDensityProcess as AbstractDensityProcess
from metaprior.gp import AbstractGaussianProcess as AbstractGaussianProcess
from metaprior.gp import AbstractProcess as AbstractProcess
from metaprior.gp import ConstantMean as ConstantMean
from metaprior.gp import GaussianProcess as GaussianProcess
from metaprior.gp import Matern as Matern
from metaprior.gp import Periodic as Periodic
from metaprior.gp import SquaredExponential as SquaredExponential
from metaprior.processes._gaussian import gaussian_process as gaussian_process
from metaprior.processes._sampled import SampledProcess as SampledProcess
from metaprior.processes._sampled import random_sinusoids as random_sinusoids
from metaprior.processes._score import AbstractScore as AbstractScore
from metaprior.processes._score import AbstractScoreEstimator as AbstractScoreEstimator
from metaprior.processes._score import DensityScore as DensityScore
from metaprior.processes._student_t import StudentTProcess as StudentTProcess
