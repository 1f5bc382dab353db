"""The one place that factors matrices."""

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
