"""What a prior holds: the settings of its method and the arrays that were learned.

Both are what the files of a prior hold. The belief is built from them in NumPy; method and
surrogate, for compiled code, are built when they are first asked for.
"""

import abc
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._read import belief_of
from metaprior.belief._settings import Settings

if TYPE_CHECKING:
    from metaprior.methods import AbstractMethod, AbstractSurrogate
else:  # importing them imports JAX
    AbstractMethod = AbstractSurrogate = Any


class AbstractContents(abc.ABC):
    """What was learned, and by which method."""

    @property
    @abc.abstractmethod
    def settings(self) -> Settings:
        """Settings of the method, its name among them."""

    @property
    @abc.abstractmethod
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Arrays of the surrogate, by the path of their field."""

    @property
    @abc.abstractmethod
    def method(self) -> AbstractMethod:
        """The configuration that learned."""

    @property
    @abc.abstractmethod
    def surrogate(self) -> AbstractSurrogate:
        """What was learned, for compiled code."""

    def belief(self, num_columns: int) -> AbstractBelief:
        """What was learned, in NumPy; a method without such a form is compiled when it is asked.

        - `num_columns`: `num_inputs` of the space.
        """
        belief = belief_of(self.settings, self.arrays, num_columns)
        if belief is None:
            from metaprior.methods import compiled_belief

            belief = compiled_belief(self.settings, self.arrays, self.surrogate)
        return belief


class SavedContents(AbstractContents):
    """Settings and arrays as files hold them.

    - `num_columns`: `num_inputs` of the space.
    """

    def __init__(self, settings: Settings, arrays: Mapping[str, np.ndarray], num_columns: int):
        self._settings = settings
        self._arrays = arrays
        self._num_columns = num_columns

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def arrays(self) -> Mapping[str, np.ndarray]:
        return self._arrays

    @property
    def method(self) -> AbstractMethod:
        from metaprior.methods import method_of

        return method_of(dict(self._settings))

    @property
    def surrogate(self) -> AbstractSurrogate:
        return self._filled

    @cached_property
    def _filled(self) -> AbstractSurrogate:
        from metaprior.methods import filled_surrogate

        return filled_surrogate(self.method, self._arrays, self._num_columns)
