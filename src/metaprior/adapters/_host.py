"""What can be said about a host, such as Optuna, without importing it: hosts are optional."""

from importlib import import_module
from typing import NamedTuple


class StudyUse(NamedTuple):
    """How one study was used.

    - `trials`: number of trials used; for a skipped study, number of usable ones.
    - `left_out`: number of trials left out, by reason: failed, pruned, running, waiting, not
      finite, infeasible, without the metric, without parameters, outside the space, and others
      that a host may have.
    - `reason`: why the study was not used; empty if it was.
    """

    name: str
    used: bool
    trials: int
    left_out: dict[str, int]
    reason: str


def require_host(module: str, *, called: str, extra: str, oldest: int) -> None:
    """Raise an ImportError that says what to install, unless the host can be imported.

    - `module`: the host's package; `called`: its name in words.
    - `extra`: the optional dependencies of metaprior that bring it.
    - `oldest`: the first major version that will do.
    """
    install = f"install it with `pip install 'metaprior[{extra}]'`"
    try:
        found = str(import_module(module).__version__)
    except ImportError as error:
        raise ImportError(
            f"This part of metaprior needs {called}, which cannot be imported ({error}); {install}."
        ) from error
    if int(found.split(".")[0]) < oldest:
        raise ImportError(
            f"This part of metaprior needs {called} {oldest} or newer, found {found}; {install}."
        )
