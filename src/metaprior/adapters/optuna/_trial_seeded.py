"""Random parameters that depend on the trial alone: workers agree on them, and trials differ."""

from typing import Any
from zlib import crc32

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial


class TrialSeededSampler(BaseSampler):
    """Random search whose draws follow from the seed, the trial's number and the parameter's name.

    Workers with the same seed would draw the same parameters from generators of their own.
    """

    def __init__(self, seed: int):
        self._seed = seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        names = [self._seed, trial.number, crc32(param_name.encode())]
        drawn = RandomSampler(seed=int(np.random.SeedSequence(names).generate_state(1)[0]))
        return drawn.sample_independent(study, trial, param_name, param_distribution)
