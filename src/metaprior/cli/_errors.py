"""How a command fails: exit codes, and missing extras as bad input."""

from collections.abc import Iterator
from contextlib import contextmanager

BAD_INPUT = 2
# Stopped from the keyboard.
INTERRUPTED = 130


@contextmanager
def needing_host() -> Iterator[None]:
    """Turn a failed import into bad input: a sentence that says what to install."""
    try:
        yield
    except ImportError as error:
        raise ValueError(str(error)) from None
