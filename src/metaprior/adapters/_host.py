"""The hosts of the adapters are optional: one sentence if a host is missing or too old."""

from importlib import import_module


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
