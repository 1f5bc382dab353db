"""Factorisation, jitter, and what happens when a matrix cannot be factored."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import metaprior
from metaprior.gp import require_finite
from metaprior.gp._linalg import JITTER, cholesky, invert_factor, log_determinant


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("jitter", [0.0, 1e-3, 2.0])
def test_cholesky_adds_the_jitter_to_the_diagonal(n, jitter):
    covariance = positive_definite(n)
    factor = np.asarray(cholesky(jnp.asarray(covariance), jitter))
    np.testing.assert_allclose(factor @ factor.T, covariance + jitter * np.eye(n), rtol=1e-12)
    assert not np.triu(factor, 1).any()


def test_cholesky_default_jitter_is_as_stated():
    assert JITTER == 1e-8
    factor = cholesky(jnp.zeros((2, 2)))
    np.testing.assert_allclose(np.asarray(factor), 1e-4 * np.eye(2), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_invert_factor_and_log_determinant_match_numpy(n):
    factor = np.linalg.cholesky(positive_definite(n, seed=n))
    inverse = invert_factor(jnp.asarray(factor))
    np.testing.assert_allclose(np.asarray(inverse), np.linalg.inv(factor), rtol=1e-9, atol=1e-12)
    sign, expected = np.linalg.slogdet(factor @ factor.T)
    assert sign == 1
    np.testing.assert_allclose(log_determinant(jnp.asarray(factor)), expected, rtol=1e-10)


def test_cholesky_jitter_allows_singular_covariances():
    """A hundred equal points, and a hundred points within a hundredth of a lengthscale."""
    for spread in (0.0, 0.01):
        x = np.linspace(0.0, spread, 100)
        covariance = np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2)
        assert np.linalg.matrix_rank(covariance) < 10
        assert np.isfinite(np.asarray(cholesky(jnp.asarray(covariance)))).all()


def test_cholesky_matrix_that_is_not_positive_definite_gives_nan_and_a_named_error():
    factor = jax.jit(cholesky)(jnp.asarray([[1.0, 2.0], [2.0, 1.0]]))
    assert np.isnan(np.asarray(factor)).any()
    with pytest.raises(FloatingPointError, match="The factor is not finite.*positive definite"):
        require_finite(factor, "The factor")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_require_finite_refuses_one_bad_number_among_many(bad):
    values = np.zeros((3, 4))
    require_finite(values, "Zeros")
    require_finite(np.empty(0), "Nothing")
    values[1, 2] = bad
    with pytest.raises(FloatingPointError, match="^The prediction is not finite"):
        require_finite(values, "The prediction")


def test_cholesky_is_called_in_one_place_of_compiled_code_and_one_of_numpy_code():
    package = Path(metaprior.__file__).parent
    callers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "linalg.cholesky(" in path.read_text()
    }
    assert callers == {"belief/_linalg.py", "gp/_linalg.py"}
