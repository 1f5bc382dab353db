"""The extra that figures need."""

import importlib.util


def require_matplotlib(what: str) -> None:
    """Raise a `ValueError` that says how to install matplotlib, if it is missing.

    - `what`: what is to be drawn, such as `"A report"`.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(
            f"{what} is drawn with matplotlib, which is not installed; install it with "
            "`pip install 'metaprior[plots]'`."
        )
