"""From a job to the contender that it is about: the one place where names become contenders."""

from collections.abc import Callable
from typing import Any

from metaprior.lab.environments import known_families
from metaprior.lab.studies._asked import LearnContender
from metaprior.lab.studies._contenders import (
    AbstractContender,
    CompiledContender,
    RandomContender,
)
from metaprior.lab.studies._entrants import LEARN, RANDOM_SEARCH, EntrantName, method_named
from metaprior.lab.studies._specification import Specification

# Studies that only predict have no acquisition.
_DEFAULT_ACQUISITION = "ucb"


def contender_of(job: Specification) -> AbstractContender[Any]:
    """The contender of a job."""
    make = _MAKERS.get(EntrantName.of(job["method"]).method, _compiled)
    return make(job)


def _compiled(job: Specification) -> AbstractContender[Any]:
    asked_by = job.get("acquisition", _DEFAULT_ACQUISITION)
    return CompiledContender(
        method_named(job["method"], job["settings"]),
        EntrantName.of(job["method"]).acquisition(asked_by),
        known_families()[job["environment"]],
    )


def _random(job: Specification) -> AbstractContender[Any]:
    return RandomContender(known_families()[job["environment"]])


def _learn(job: Specification) -> AbstractContender[Any]:
    return LearnContender(known_families()[job["environment"]].space, **job["settings"])


_MAKERS: dict[str, Callable[[Specification], AbstractContender[Any]]] = {
    RANDOM_SEARCH: _random,
    LEARN: _learn,
}
