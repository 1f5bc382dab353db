"""The one scene with JAX in it: `metaprior learn`, as a process of its own."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import metaprior as mp
from tests.kill._engine import Tally, hidden_in

# Long enough that some of the processes end before they are killed.
LONGEST = 25.0


def run_learning(kills: int, folder: Path, rng: np.random.Generator) -> Tally:
    """Kill `metaprior learn --force` so many times; the prior that is there loads each time."""
    tally = Tally()
    runs = folder / "runs"
    runs.mkdir(parents=True)
    for i in range(3):
        rows = "".join(f"{x / 4},{(x - i) ** 2}\n" for x in range(5))
        (runs / f"{i}.csv").write_text("x,value\n" + rows)
    command = [sys.executable, "-m", "metaprior.cli", "learn", str(runs), "--budget", "fast"]
    for number in range(kills):
        out = folder / "prior"
        with subprocess.Popen(
            [*command, "--out", str(out), "--force"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            began, after = time.monotonic(), float(rng.uniform(0.0, LONGEST))
            while process.poll() is None and time.monotonic() - began < after:
                time.sleep(0.01)
            tally.done += process.poll() == 0
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
        tally.kills += 1
        left = len(hidden_in(folder))
        tally.hidden += left > 0
        tally.most_hidden = max(tally.most_hidden, left)
        try:
            if tally.done or (out / "prior.json").exists():
                mp.load(out)
            assert {path.name for path in folder.iterdir()} <= {"runs", "prior"}, "litter"
            assert left <= 2, "litter grows"
        except (AssertionError, ValueError) as error:
            tally.failures.append(f"kill {number}: {error}")
    return tally
