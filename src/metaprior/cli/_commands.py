"""How every command ends: errors become one sentence and an exit code, Ctrl-C ends at once."""

import os
import sys
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from metaprior.cli._errors import BAD_INPUT, HOSTILE, INTERRUPTED, sentence
from metaprior.cli._terminal import say


class Commands(TyperGroup):
    """All commands; what the library raises becomes one sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of a pipe has closed it, which is not an error of the command
        except HOSTILE as error:
            say(f"Error: {sentence(error)}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def leave(signum: int, frame: FrameType | None) -> None:
    """End the process at once.

    An exception would not do: raised while JAX is called back by Python's garbage collector, which
    is where a signal during a compilation often arrives, it is swallowed and the command goes on.
    """
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\x1b[?25h\n")  # the progress bar had hidden the cursor
    os._exit(INTERRUPTED)
