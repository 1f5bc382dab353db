"""Running a piece of the full study: within a limit of time, resumably, and written down.

`run.json`, beside the folders of the studies, has one entry for each call: the piece, its command,
how long it took, whether the piece is finished, and on what it ran.
"""

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.results._pieces import CPU, SOURCES, Piece
from metaprior.files import replace_file

LOG = "run.json"
FINISHED, FAILED, UNFINISHED = 0, 1, 3
# Several processes on one GPU: memory as it is needed, and short compilation.
ON_GPU = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_FLAGS": "--xla_gpu_autotune_level=0",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
}
ON_CPU = {"JAX_PLATFORMS": "cpu"}
# How long a study has to write down what has finished, once it is told to stop.
GRACE_SECONDS = 20


def run_piece(
    piece: Piece, studies: Path, *, jobs: int, seconds: float, smoke: bool, machine: str
) -> int:
    """Run a piece or what is left of it; the exit code of the call. A piece that is finished, as
    the log says, is not begun again.

    - `seconds`: after so long it is told to stop; jobs that have finished are kept, and the same
      call goes on.
    """
    command = piece.command(studies, jobs, smoke)
    finished = {entry["command"] for entry in read_log(studies) if entry["finished"]}
    if shlex.join(command) in finished:
        print(f"{piece.name}: finished before")
        return FINISHED
    if piece.uses is not None:
        collect_choices(studies, piece.uses)
    print(shlex.join(command), flush=True)
    began = time.monotonic()
    code = _within(command, {**(ON_CPU if piece.device == CPU else ON_GPU)}, seconds)
    entry = {
        "piece": piece.name,
        "command": shlex.join(command),
        "seconds": round(time.monotonic() - began),
        "finished": code == FINISHED,
        "device": piece.device,
        "machine": machine or platform.platform(),
        "software": f"Python {platform.python_version()}, JAX {version('jax')}",
        "date": f"{date.today():%B %Y}",
    }
    write_log(studies, [*read_log(studies), entry])
    print(f"{piece.name}: {entry['seconds']} s, {_WORDS.get(code, f'exit code {code}')}")
    return code


def collect_choices(studies: Path, chosen: str) -> Path:
    """What all searches chose so far, in one folder."""
    found = sorted(studies.glob(f"search-*/{SOURCES[chosen]}"))
    if not found:
        raise ValueError(
            f"No search has chosen configurations in {studies}; run the pieces search-... first."
        )
    for folder in found:
        shutil.copytree(folder, studies / chosen, dirs_exist_ok=True)
    return studies / chosen


def read_log(studies: Path) -> list[dict[str, Any]]:
    """The entries of all calls; none if there were none."""
    path = studies / LOG
    return json.loads(path.read_text()) if path.is_file() else []


def write_log(studies: Path, entries: Sequence[dict[str, Any]]) -> None:
    studies.mkdir(parents=True, exist_ok=True)
    replace_file(studies / LOG, (json.dumps(list(entries), indent=2) + "\n").encode())


def _within(command: list[str], environment: dict[str, str], seconds: float) -> int:
    """The exit code of the command, `UNFINISHED` if it had to be told to stop."""
    here = [sys.executable, "-m", "metaprior.cli", *command[1:]]
    process = subprocess.Popen(here, env={**environment, **os.environ})
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return UNFINISHED


_WORDS = {
    FINISHED: "finished",
    FAILED: "some jobs failed; the same call tries them again",
    UNFINISHED: "stopped by the limit; the same call goes on",
}
