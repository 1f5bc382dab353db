"""Policies for studies: compiled, so that thousands of runs are optimised at once."""

from metaprior.lab.policies._acquisition import (
    AbstractCompiledAcquisition as AbstractCompiledAcquisition,
)
from metaprior.lab.policies._acquisition import CompiledConfidenceBound as CompiledConfidenceBound
from metaprior.lab.policies._acquisition import CompiledLatentBound as CompiledLatentBound
from metaprior.lab.policies._acquisition import CompiledRestlessBound as CompiledRestlessBound
from metaprior.lab.policies._loop import Trace as Trace
from metaprior.lab.policies._loop import optimise as optimise
from metaprior.lab.policies._maximise import CompiledSearch as CompiledSearch
from metaprior.lab.policies._maximise import maximise as maximise
from metaprior.lab.policies._policy import AbstractPolicy as AbstractPolicy
from metaprior.lab.policies._policy import InitialDesign as InitialDesign
from metaprior.lab.policies._policy import RandomSearch as RandomSearch
from metaprior.lab.policies._policy import SurrogatePolicy as SurrogatePolicy
