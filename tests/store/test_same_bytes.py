"""The same seed gives the same files, whatever is different between two processes."""

import os
import subprocess
import sys

import pytest

LEARN = """
import os, sys
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, cores[: int(sys.argv[3])])
import metaprior as mp
from metaprior.learning import keep_programs
keep_programs()
space = mp.Space(x=mp.Real(0.0, 1.0), c=mp.Categorical(["a", "b", "c"]))
runs = [
    (
        [{"x": 0.07 * ((3 * i + 5 * j) % 14), "c": "abc"[(i + j) % 3]} for j in range(5)],
        [0.3 * i - (0.5 - 0.07 * ((3 * i + 5 * j) % 14)) ** 2 + 0.1 * (j % 3) for j in range(5)],
    )
    for i in range(3)
]
tasks = mp.Tasks.from_runs(runs, space=space)
method = mp.methods.FPacohMap(num_steps=5) if sys.argv[2] == "one" else None
mp.learn(tasks, method=method, budget="fast", seed=3).save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["one", "race"])
def test_learn_writes_the_same_bytes_in_every_process(tmp_path, how):
    found = []
    for threads, hashes in ((1, "1"), (2, "77")):
        folder = tmp_path / hashes
        subprocess.run(
            [sys.executable, "-c", LEARN, str(folder), how, str(threads)],
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONHASHSEED": hashes,
                "OMP_NUM_THREADS": str(threads),
            },
            check=True,
        )
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(found[0]) == 3
    assert found[0] == found[1]
