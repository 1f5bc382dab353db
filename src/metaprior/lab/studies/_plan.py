"""From the specification of a study to its jobs."""

from metaprior.lab.studies import _calibration, _lifelong, _offline_study, _search, _supervised
from metaprior.lab.studies._jobs import Job
from metaprior.lab.studies._specification import Specification

_JOBS = {
    "supervised": _supervised.jobs,
    "offline": _offline_study.jobs,
    "lifelong": _lifelong.jobs,
    "search": _search.jobs,
    "calibration": _calibration.jobs,
}


def plan(specification: Specification) -> list[Job]:
    """All jobs of the study, in the order in which they are best run: what has been compiled and
    collected for one is there for the next."""
    return _JOBS[specification["kind"]](specification)
