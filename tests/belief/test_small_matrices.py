"""The one place that factors matrices."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from metaprior.belief._linalg import eigen


@pytest.mark.parametrize("size", [25, 26, 256, 257])
def test_eigen_takes_one_thread_for_small_matrices(size, monkeypatch):
    found = []

    def record(covariance):
        # NumPy's own BLAS; SciPy may have brought another.
        pools = [pool for pool in threadpool_info() if "numpy" in pool["filepath"]]
        found.append([pool["num_threads"] for pool in pools])
        return eigh(covariance)

    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", record)
    with threadpool_limits(limits=2):
        values, _ = eigen(np.eye(size)[None])
    assert found == [[1 if 26 <= size <= 256 else 2]]
    np.testing.assert_allclose(values, 1.0)


def test_eigen_restores_threads_when_calls_overlap(monkeypatch):
    """The first call ends while the second is still inside, as in studies with several jobs."""
    inside, go_on = threading.Barrier(2), threading.Event()
    eigh = np.linalg.eigh

    def meet(covariance):
        inside.wait(timeout=10)
        if threading.current_thread().name == "second":
            go_on.wait(timeout=10)
        return eigh(covariance)

    monkeypatch.setattr(np.linalg, "eigh", meet)
    with threadpool_limits(limits=2):
        both = [
            threading.Thread(target=eigen, args=(np.eye(30)[None],), name=name)
            for name in ("first", "second")
        ]
        for thread in both:
            thread.start()
        both[0].join(timeout=10)
        go_on.set()
        both[1].join(timeout=10)
        own = [pool for pool in threadpool_info() if "numpy" in pool["filepath"]]
        assert [pool["num_threads"] for pool in own] == [2]
