"""Deciding: acquisition functions, their maximisation, policies and the ask/tell optimiser."""

from metaprior.bo._acquisition import AbstractAcquisition as AbstractAcquisition
from metaprior.bo._acquisition import LogExpectedImprovement as LogExpectedImprovement
from metaprior.bo._acquisition import RestlessConfidenceBound as RestlessConfidenceBound
from metaprior.bo._acquisition import ThompsonSampling as ThompsonSampling
from metaprior.bo._acquisition import UpperConfidenceBound as UpperConfidenceBound
from metaprior.bo._loop import Trace as Trace
from metaprior.bo._loop import optimise as optimise
from metaprior.bo._maximise import Search as Search
from metaprior.bo._maximise import maximise as maximise
from metaprior.bo._optimizer import Best as Best
from metaprior.bo._optimizer import Optimizer as Optimizer
from metaprior.bo._policy import AbstractPolicy as AbstractPolicy
from metaprior.bo._policy import InitialDesign as InitialDesign
from metaprior.bo._policy import RandomSearch as RandomSearch
from metaprior.bo._policy import SurrogatePolicy as SurrogatePolicy
