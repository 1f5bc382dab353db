"""What a conditioned belief promises of itself: slopes, samples, paths, growth, odd runs."""

import json
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import metaprior
from tests.belief.conftest import NUM_COLUMNS

KINDS = (
    "ABLR",
    "FPacohMap",
    "FPacohMap with effects",
    "FPacohMap with a composed kernel",
    "FittedGP",
    "LearnedGP",
    "LearnedGP with a composed kernel",
    "RankWeightedGP",
)


# The others have kernels and networks of the same code.
QUICK = {"FPacohMap with effects", "LearnedGP with a composed kernel", "ABLR"}


def some_of(names):
    return [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in names]


def conditioned(saved, run, name, length):
    x, y = (part[:length] for part in run)
    if name == "both":
        # Between the thresholds of the guard: members of two kinds at once.
        return saved("Guarded").belief.settled(0.5).condition(x, y)
    return saved(name).belief.condition(x, y)


def differences(function, x, step=1e-5):
    """Central differences by every coordinate, one after another."""
    columns = []
    for j in range(x.shape[1]):
        move = step * np.eye(x.shape[1])[j]
        columns.append((function(x + move) - function(x - move)) / (2.0 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("length", [0, 1, 12])
@pytest.mark.parametrize("name", [*some_of(KINDS), "both"])
def test_belief_slopes_match_central_differences(saved, run, queries, name, length):
    belief, x = conditioned(saved, run, name, length), queries[:8]
    found = belief.slopes(x)
    for moment in ("mean", "function_variance"):
        expected = differences(lambda z, m=moment: getattr(belief.moments(z), m), x)
        # A difference of two numbers of this size is exact to 1e-10 of it, over a step of 1e-5.
        size = np.max(np.abs(getattr(belief.moments(x), moment)))
        np.testing.assert_allclose(getattr(found, moment), expected, rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(found.moments.mean, belief.moments(x).mean, rtol=1e-12)


@pytest.mark.parametrize("name", [*KINDS, "both"])
def test_belief_path_slopes_match_central_differences(saved, run, queries, name):
    belief = conditioned(saved, run, name, 7)
    path = belief.path(queries, np.random.default_rng(0))
    x = np.random.default_rng(1).uniform(size=(5, NUM_COLUMNS))
    values, slopes = path.slopes(x)
    np.testing.assert_allclose(values, path(x), rtol=1e-12)
    size = np.max(np.abs(values))
    np.testing.assert_allclose(slopes, differences(path, x), rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("name", [*KINDS, "both"])
def test_belief_covariance_has_the_variances_and_is_positive(saved, run, queries, name):
    belief = conditioned(saved, run, name, 7)
    covariance = belief.covariance(queries)
    variance = belief.moments(queries).function_variance
    np.testing.assert_allclose(np.diagonal(covariance), variance, atol=1e-9 * variance.max())
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12 * variance.max())
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * variance.max()


def mean_and_covariance_agree(samples, mean, covariance) -> bool:
    """Whether both lie within five standard errors, in every entry."""
    num = len(samples)
    mean_error = np.sqrt(np.diagonal(covariance) / num)
    apart = samples - samples.mean(axis=0)
    products = apart[:, :, None] * apart[:, None, :]
    covariance_error = products.std(axis=0) / np.sqrt(num)
    return bool(
        np.all(np.abs(samples.mean(axis=0) - mean) < 5.0 * mean_error)
        and np.all(np.abs(products.mean(axis=0) - covariance) < 5.0 * covariance_error)
    )


@pytest.mark.parametrize("name", [*KINDS, "both"])
def test_belief_samples_have_its_mean_and_covariance(saved, run, queries, name):
    belief, x = conditioned(saved, run, name, 3), queries[:4]
    samples = belief.sample(x, 20_000, np.random.default_rng(0))
    mean, covariance = belief.moments(x).mean, belief.covariance(x)
    assert mean_and_covariance_agree(samples, mean, covariance)
    # The controls: a tenth of a standard deviation, or of the variance, would be noticed.
    assert not mean_and_covariance_agree(samples, mean + 0.1 * samples.std(axis=0), covariance)
    assert not mean_and_covariance_agree(samples, mean, 1.1 * covariance)


@pytest.mark.parametrize(
    "name",
    ["FPacohMap with effects", "ABLR", pytest.param("RankWeightedGP", marks=pytest.mark.slow)],
)
def test_belief_paths_at_anchors_have_its_distribution(saved, run, queries, name):
    belief, x = conditioned(saved, run, name, 3), queries[:2]
    rng = np.random.default_rng(0)
    drawn = np.stack([belief.path(x, rng)(x) for _ in range(1000)])
    moments = belief.moments(x)
    for values, mean, variance in zip(
        drawn.T, moments.mean, moments.function_variance, strict=True
    ):
        normal = scipy.stats.norm(mean, np.sqrt(variance))
        assert scipy.stats.kstest(values, normal.cdf).pvalue > 1e-4
        # The control: the test can tell a fifth of a standard deviation.
        assert scipy.stats.kstest(values + 0.2 * np.sqrt(variance), normal.cdf).pvalue < 1e-4


def test_belief_paths_go_through_observations_without_noise(saved, run):
    x, y = (part[:5] for part in run)
    belief = saved("FixedGP").belief.condition(x, y)
    anchors = np.random.default_rng(0).uniform(size=(40, NUM_COLUMNS))
    path = belief.path(anchors, np.random.default_rng(1))
    std = np.sqrt(belief.moments(x).function_variance)
    assert np.all(np.abs(path(x) - belief.moments(x).mean) < 6.0 * std)
    assert np.ptp(path(anchors) - belief.moments(anchors).mean) > 0.1


@pytest.mark.parametrize("name", [*KINDS, "Guarded"])
def test_belief_observe_equals_condition(saved, run, queries, name):
    x, y = (part[:8] for part in run)
    belief = saved(name).belief
    grown = belief.condition(x[:7], y[:7]).observe(x[7], y[7]).moments(queries)
    expected = belief.condition(x, y).moments(queries)
    np.testing.assert_array_equal(grown.mean, expected.mean)
    np.testing.assert_array_equal(grown.variance, expected.variance)


@pytest.mark.parametrize("name", [*KINDS, "Guarded", "SelfStandardisedGP"])
def test_belief_condition_survives_odd_runs(saved, queries, name):
    same = np.full((12, NUM_COLUMNS), 0.3)
    for x, y in (
        (same, np.ones(12)),
        (same, np.linspace(0.0, 1.0, 12)),
        (np.random.default_rng(0).uniform(size=(12, NUM_COLUMNS)), np.zeros(12)),
        (np.random.default_rng(0).uniform(size=(2, NUM_COLUMNS)), np.array([0.0, 1e8])),
    ):
        belief = saved(name).belief.condition(x, y)
        moments = belief.moments(queries)
        assert np.isfinite(moments.mean).all()
        assert np.all(moments.function_variance > 0.0)
        assert np.isfinite(belief.slopes(queries).function_variance).all()


def test_belief_weights_sum_to_one(saved, run):
    belief = conditioned(saved, run, "both", 7)
    assert len(belief.weights) == 3 + 12
    np.testing.assert_allclose(belief.weights.sum(), 1.0)
    np.testing.assert_allclose(belief.weights[:3], 0.5 / 3)


def test_belief_trust_is_none_without_a_guard(saved, run):
    assert saved("FPacohMap").belief.trust(*run) is None
    assert saved("FPacohMap").belief.settled(None) is saved("FPacohMap").belief


def test_belief_condition_rejects_wrong_shapes_and_numbers(saved):
    belief = saved("LearnedGP").belief
    with pytest.raises(ValueError, match=r"points of shape \(2, 3\) and values of shape \(3,\)"):
        belief.condition(np.zeros((2, NUM_COLUMNS)), np.zeros(3))
    with pytest.raises(ValueError, match="not finite"):
        belief.condition(np.zeros((1, NUM_COLUMNS)), np.array([np.nan]))


def test_belief_moments_need_little_memory_for_many_points(saved, run):
    belief = conditioned(saved, run, "both", 30)
    x = np.random.default_rng(0).uniform(size=(50_000, NUM_COLUMNS))
    tracemalloc.start()
    belief.moments(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Fifteen members have two numbers each for a point, which are joined at the end.
    assert peak < 60e6


def test_belief_moments_do_not_depend_on_blocks(saved, run):
    belief = conditioned(saved, run, "both", 30)
    x = np.random.default_rng(0).uniform(size=(3000, NUM_COLUMNS))
    np.testing.assert_allclose(
        belief.moments(x).mean[2000:], belief.moments(x[2000:]).mean, rtol=1e-10
    )


def test_belief_of_fixed_gp_takes_2000_points(saved):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2000, NUM_COLUMNS))
    y = np.sin(5.0 * x.sum(axis=1))
    moments = saved("FixedGP").belief.condition(x, y).moments(x[:5])
    np.testing.assert_allclose(moments.mean, y[:5], atol=1e-2)


WITHOUT_JAX = """
    import json, sys, types
    from pathlib import Path

    import numpy as np
    from safetensors.numpy import load_file

    # Only the part under test: the packages around it still import JAX for others.
    for name, path in (("metaprior", ""), ("metaprior.belief", "/belief")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [sys.argv[2] + path]
    from metaprior.belief._read import belief_of

    folder = Path(sys.argv[1])
    settings = json.loads((folder / "prior.json").read_text())["method"]
    arrays = load_file(next(folder.glob("prior-*.safetensors")))
    arrays = {p: a for p, a in arrays.items() if not p.startswith("history/")}
    belief = belief_of(settings, arrays, 3)
    moments = belief.condition(np.full((1, 3), 0.5), np.ones(1)).moments(np.full((1, 3), 0.4))
    assert not {"jax", "equinox"} & sys.modules.keys()
    print(json.dumps([float(moments.mean[0]), float(moments.variance[0])]))
"""


@pytest.mark.parametrize("name", ["Guarded", "RankWeightedGP"])
def test_belief_needs_no_jax(saved, tmp_path, name):
    for module in ("jax", "equinox"):
        (tmp_path / f"{module}.py").write_text(f"raise ImportError('{module} is not here')")
    program = textwrap.dedent(WITHOUT_JAX)
    source = Path(metaprior.__file__).parent
    found = subprocess.run(
        [sys.executable, "-c", program, str(saved(name).folder), str(source)],
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    point, value = np.full((1, NUM_COLUMNS), 0.5), np.ones(1)
    expected = saved(name).belief.condition(point, value).moments(np.full((1, NUM_COLUMNS), 0.4))
    np.testing.assert_allclose(
        json.loads(found.stdout), [expected.mean[0], expected.variance[0]], rtol=1e-12
    )
