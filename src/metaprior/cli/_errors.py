"""How a command fails: exit codes, and missing extras as bad input."""

from collections.abc import Iterator
from contextlib import contextmanager

from metaprior.words import cut

BAD_INPUT = 2
# Stopped from the keyboard.
INTERRUPTED = 130
# What bad input raises where it is found out: by the library, with a sentence, or by Python.
HOSTILE = (
    *(ValueError, OSError, ArithmeticError, TypeError, RecursionError, MemoryError),
    *(LookupError, AttributeError),
)
_LONGEST = 300


@contextmanager
def needing_host() -> Iterator[None]:
    """Turn a failed import into bad input: a sentence that says what to install."""
    try:
        yield
    except ImportError as error:
        raise ValueError(str(error)) from None


def sentence(error: Exception) -> str:
    """The error as one sentence: the library's own, or what Python's says of the input."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, MemoryError):
        return "There is not enough memory for this input; give fewer or smaller runs."
    text = str(error)
    if isinstance(error, (ValueError, TypeError, FloatingPointError)) and text.endswith("."):
        return text
    problem = cut(f"{type(error).__name__}: {text}".rstrip(".: "), _LONGEST)
    return f"The input cannot be used ({problem}); check the files and options that were given."
