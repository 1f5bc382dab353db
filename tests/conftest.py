"""Strictness for every test: double precision, no silent broadcasting, shapes checked."""

import os
import signal
from pathlib import Path

# What is compiled is kept for the other workers, the programs that tests start and the next run:
# it is found again by its instructions, so changed code compiles anew. `make clean` removes it.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
# Most of the time of these tests is compilation, of code that then runs for milliseconds: these and
# the setting further down nearly halve it.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
# The loader takes preferences of the compiler for features of the machine, and says so each time.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import jax
import numpy as np
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_disable_most_optimizations", True)

install_import_hook("metaprior", "beartype.beartype")

# A deadline for one example measures how busy the machine is.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")


# Shared by the tests of learning, predicting, optimising and storing: training compiles once for
# all of them, since every set of tasks they use has these lengths and this space.
HILL_LENGTHS = (1, 5, 6, 8, 8, 8)


@pytest.fixture(scope="session")
def hill_space():
    import metaprior as mp

    return mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))


@pytest.fixture(scope="session")
def hill_runs():
    """Hills around (0.3, 6), each a little elsewhere: the best value of every run is below 2."""
    rng = np.random.default_rng(0)
    runs = []
    for length in HILL_LENGTHS:
        points = rng.uniform([-1.0, 0.0], [1.0, 10.0], (length, 2))
        top = np.array([0.3, 6.0]) + rng.normal(size=2) * [0.05, 0.3]
        distance = ((points - top) / [0.8, 4.0]) ** 2
        runs.append((points, 2.0 - distance.sum(axis=1)))
    return runs


@pytest.fixture(scope="session")
def quick_fpacoh():
    """The method with few steps and its usual sizes."""
    import metaprior as mp

    return mp.methods.FPacohMap(num_steps=150, learning_rate=1e-2)


@pytest.fixture(scope="session")
def hill_prior(hill_space, hill_runs, quick_fpacoh):
    """A prior learned from the hills, to be maximised."""
    import metaprior as mp

    return mp.learn(mp.Tasks.from_runs(hill_runs, space=hill_space), method=quick_fpacoh, seed=0)


def pytest_configure(config):
    # A shell starts what runs in the background deaf to Ctrl-C, and programs hand that on.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Two workers share the folder of compiled code: what one reads while the other still writes it
    # is compiled once more, and a folder that cannot be written to costs time and nothing else.
    message = "Error (reading|writing) persistent compilation cache"
    config.addinivalue_line("filterwarnings", f"ignore:{message}:UserWarning")


# What takes longest, in this order: begun first, so that no worker is left with one of them at the
# end. A file stays on one worker, which makes its fixtures once (pytest --dist loadfile).
LONG = ("test_examples", "test_", "adapters", "cli", "learning", "methods", "conformance", "bo")


def pytest_collection_modifyitems(items):
    def rank(item) -> int:
        path = item.nodeid.removeprefix("tests/")
        return next((i for i, name in enumerate(LONG) if path.startswith(name)), len(LONG))

    items.sort(key=rank)
