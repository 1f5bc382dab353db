"""How many programs `learn` compiles, in a process that has compiled nothing before."""

import os
import subprocess
import sys

import pytest

# There were 160 of them when every operation between the compiled loops was one.
MOST_PROGRAMS = 12

COUNT = """
import jax, jax.monitoring, numpy as np
import metaprior as mp

compiled = []
def note(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        compiled.append(event)
jax.monitoring.register_event_duration_secs_listener(note)
rng = np.random.default_rng(0)
runs = [(rng.uniform(size=(6, 2)), rng.normal(size=6)) for _ in range(6)]
tasks = mp.Tasks.from_runs(runs, space=mp.Space(a=mp.Real(0, 1), b=mp.Real(0, 1)))
prior = mp.learn(tasks, budget="fast", seed=0)
assert prior.findings.replay is not None
first = len(compiled)
mp.learn(tasks, budget="fast", seed=1)
print(first, len(compiled) - first)
"""


@pytest.mark.slow
def test_learn_compiles_few_programs_and_hardly_any_the_second_time():
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        env=os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    assert 4 < first <= MOST_PROGRAMS and second <= 3
