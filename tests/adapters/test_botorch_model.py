"""A prior as a BoTorch model says what the prior says, and lives where BoTorch's own models do."""

# ruff: noqa: E402 (nothing below can be imported without torch)

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="`make oracle` installs torch")
pytestmark = pytest.mark.oracle

from botorch.acquisition import (
    LogExpectedImprovement,
    qKnowledgeGradient,
    qUpperConfidenceBound,
)
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.acquisition.multi_objective.logei import (
    qLogNoisyExpectedHypervolumeImprovement,
)
from botorch.acquisition.objective import GenericMCObjective, ScalarizedPosteriorTransform
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.model import ModelList
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf, optimize_acqf_mixed
from botorch.posteriors import GPyTorchPosterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.list_sampler import ListSampler
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.testing import BotorchTestCase
from safetensors.torch import load as read_tensors
from safetensors.torch import save as write_tensors

import metaprior as mp
from metaprior.adapters.botorch import LearnedModel, UnitCube, UserUnits, model
from metaprior.belief import AbstractStackedKernel, Unchanged
from tests.adapters.hand_made import MIXED, PRIORS, learned, points, prior_of, values

# One member, several with every kernel, and a mixture with unequal weights.
VARIED = ("one member", "every kernel", "guarded", "weighed")


def run_of(num, *, space=MIXED):
    return points(num, seed=1, space=space), values(num, seed=2)


def model_of(prior, num, **rest):
    where, value = run_of(num, space=prior.space)
    x = (
        UnitCube(prior.space).tensor(where)
        if num
        else torch.zeros(0, prior.space.num_columns).double()
    )
    return model(prior, x, torch.tensor(value)[:, None], **rest)


def sampler(num=16):
    return SobolQMCNormalSampler(torch.Size([num]), seed=0)


def flat(tensor):
    return tensor.detach().squeeze(-1).numpy()


def assert_says_what_the_prior_says(found, posterior, queries, x):
    mean, std = posterior.predict(queries, noiseless=True)
    _, observed_std = posterior.predict(queries)
    function, observation = found.posterior(x), found.posterior(x, observation_noise=True)
    np.testing.assert_allclose(flat(function.mean), mean, rtol=1e-6)
    np.testing.assert_allclose(flat(function.variance), std**2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(flat(observation.variance), observed_std**2, rtol=1e-6)
    np.testing.assert_allclose(
        function.distribution.covariance_matrix.detach().numpy(),
        posterior.covariance(queries),
        rtol=1e-6,
        atol=1e-8,
    )


@pytest.mark.parametrize("num", [0, 1, 30])
@pytest.mark.parametrize("name", PRIORS)
def test_model_says_what_the_prior_says(name, num):
    prior = PRIORS[name]
    where, value = run_of(num)
    features = {"size": 9.0} if prior.features.names else None
    found = model_of(prior, num, features=features)
    posterior = prior.condition(where, value, features=features)
    queries = points(12, seed=3) + where[:2]
    assert_says_what_the_prior_says(found, posterior, queries, UnitCube(MIXED).tensor(queries))


def test_model_sees_many_choices_as_the_prior_does():
    names = [f"resin {i}" for i in range(40)]
    space = mp.Space(x=mp.Real(0.0, 1.0), resin=mp.Categorical(names))
    rng = np.random.default_rng(0)
    runs = [(space.decode(rng.uniform(size=(8, 41))), rng.normal(size=8)) for _ in range(3)]
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())
    (where, value), cube = runs[0], UnitCube(space)
    found = model(prior, cube.tensor(where), torch.tensor(value)[:, None])
    queries = runs[1][0] + where[:2]
    posterior = prior.condition(where, value)
    assert_says_what_the_prior_says(found, posterior, queries, cube.tensor(queries))


def test_model_of_a_trained_prior_says_what_the_prior_says(hill_prior, hill_runs):
    x, y = hill_runs[2]
    cube = UnitCube(hill_prior.space)
    found = model(hill_prior, cube.tensor(x), torch.tensor(y)[:, None])
    queries = np.array([[0.3, 6.0], [-0.9, 1.0], [0.9, 9.5]])
    posterior = hill_prior.condition(x, y)
    assert_says_what_the_prior_says(found, posterior, queries, cube.tensor(queries))


@pytest.mark.parametrize("num", [0, 6])
@pytest.mark.parametrize("name", VARIED)
def test_model_in_user_units_is_the_same(name, num):
    prior, units = PRIORS[name], UserUnits(MIXED)
    where, value = run_of(num)
    x = units.tensor(where) if num else torch.zeros(0, 5).double()
    found = model(prior, x, torch.tensor(value)[:, None], coordinates=units)
    queries = points(12, seed=3)
    posterior = prior.condition(where, value)
    assert_says_what_the_prior_says(found, posterior, queries, units.tensor(queries))


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("coordinates", [UnitCube, UserUnits])
def test_model_has_the_derivatives_of_finite_differences(name, coordinates):
    prior, where = PRIORS[name], coordinates(MIXED)
    seen, value = run_of(6)
    found = model(prior, where.tensor(seen), torch.tensor(value)[:, None], coordinates=where)
    low, high = where.bounds
    x = low + (high - low) * torch.rand(2, low.numel(), generator=seeded()).double()
    # Categories by index have no derivative.
    free = [i for i, d in enumerate(MIXED.dimensions) if d.num_columns == 1]
    columns = free if coordinates is UserUnits else list(range(len(low)))

    def moments(x):
        posterior = found.posterior(x)
        return posterior.mean.sum() + 0.3 * posterior.distribution.covariance_matrix.sum()

    x.requires_grad_(True)
    (gradient,) = torch.autograd.grad(moments(x), x)
    assert bool(torch.isfinite(gradient).all())
    for column in columns:
        step = 1e-5 * float(high[column] - low[column])
        shift = torch.zeros_like(x)
        shift[1, column] = step
        with torch.no_grad():
            slope = (moments(x + shift) - moments(x - shift)) / (2.0 * step)
        expected = float(slope) * float(high[column] - low[column])
        assert float(gradient[1, column] * (high[column] - low[column])) == pytest.approx(
            expected, rel=1e-4, abs=1e-5
        )


def seeded():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("name", VARIED)
def test_model_is_batched(name):
    found = model_of(PRIORS[name], 5)
    x = torch.rand(3, 2, 4, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    together = found.posterior(x)
    assert together.mean.shape == (3, 2, 4, 1)
    alone = found.posterior(x[2, 1])
    np.testing.assert_allclose(flat(together.mean[2, 1]), flat(alone.mean), rtol=1e-9)
    np.testing.assert_allclose(
        together.distribution.covariance_matrix[2, 1].numpy(),
        alone.distribution.covariance_matrix.numpy(),
        rtol=1e-9,
        atol=1e-12,
    )
    assert (
        found.posterior(x[0, 0], observation_noise=torch.full((4, 1), 2.0).double())
        .variance.sub(found.posterior(x[0, 0]).variance)
        .sub(2.0)
        .abs()
        .max()
        < 1e-9
    )


@pytest.mark.parametrize("num", [0, 4])
@pytest.mark.parametrize("name", VARIED)
def test_model_conditioned_later_is_the_model_conditioned_at_once(name, num):
    """With noise, scale and weights as they were: those of the same numbers, from the start."""
    found = model_of(PRIORS[name], num)
    x = torch.rand(5, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    y = torch.randn(5, 1, dtype=torch.float64, generator=seeded())
    queries = torch.rand(3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    at_once = found.condition_on_observations(x, y)
    in_turn = found.condition_on_observations(x[:2], y[:2]).condition_on_observations(x[2:], y[2:])
    np.testing.assert_allclose(
        flat(at_once.posterior(queries).mean), flat(in_turn.posterior(queries).mean), rtol=1e-8
    )
    assert at_once.train_inputs[0].shape == (num + 5, MIXED.num_columns)
    assert (at_once.posterior(x).variance < found.posterior(x).variance + 1e-12).all()


def test_model_conditioned_later_equals_the_prior_that_does_not_refine():
    fixed = learned(0, MIXED.num_columns, members=2)
    fixed = fixed.__class__(
        fixed.processes,
        fixed.noise_variance,
        type(fixed.spread)(np.zeros(2), np.zeros(2)),
        fixed.y_mean,
        fixed.y_std,
    )
    prior, (where, value) = prior_of(fixed), run_of(9)
    cube = UnitCube(MIXED)
    found = model_of(prior, 0).condition_on_observations(
        cube.tensor(where), torch.tensor(value)[:, None]
    )
    queries = points(5, seed=3)
    assert_says_what_the_prior_says(
        found, prior.condition(where, value), queries, cube.tensor(queries)
    )


@pytest.mark.parametrize("num", [0, 4])
@pytest.mark.parametrize("name", VARIED)
def test_model_fantasizes(name, num):
    found = model_of(PRIORS[name], num)
    pending = torch.rand(2, 3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    fantasies = found.fantasize(pending, sampler(4))
    assert fantasies.batch_shape == (4, 2) and fantasies.num_outputs == 1
    x = torch.rand(2, 5, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    posterior = fantasies.posterior(x)
    assert posterior.mean.shape == (4, 2, 5, 1)
    one = found.condition_on_observations(pending[1], fantasies.train_Y[3, 1, num:])
    np.testing.assert_allclose(
        flat(posterior.mean[3, 1]), flat(one.posterior(x[1]).mean), rtol=1e-7
    )


def test_model_takes_the_noise_that_it_is_given():
    prior, (where, value) = PRIORS["one member"], run_of(6)
    x = UnitCube(MIXED).tensor(where)
    y = torch.tensor(value)[:, None]
    exact = model(prior, x, y, torch.full_like(y, 1e-8))
    vague = model(prior, x, y, torch.full_like(y, 1e8))
    alone = [0, 2, 3, 5]  # points 1 and 4 are one
    np.testing.assert_allclose(flat(exact.posterior(x).mean)[alone], value[alone], atol=1e-2)
    prior_mean = flat(model_of(prior, 0).posterior(x).mean)
    np.testing.assert_allclose(flat(vague.posterior(x).mean), prior_mean, atol=1e-3)
    observed = vague.posterior(x, observation_noise=True).variance - vague.posterior(x).variance
    np.testing.assert_allclose(flat(observed), 1e8, rtol=1e-6)


def acquisitions(found, other, baseline):
    return {
        "LogEI": (1, lambda: LogExpectedImprovement(found, best_f=5.0)),
        "qLogNEI": (
            2,
            lambda: qLogNoisyExpectedImprovement(
                found, baseline, sampler=sampler(), X_pending=baseline[:1] * 0.5
            ),
        ),
        "qUCB": (2, lambda: qUpperConfidenceBound(found, beta=2.0, sampler=sampler())),
        "qLogNEHVI": (
            2,
            lambda: qLogNoisyExpectedHypervolumeImprovement(
                ModelListGP(found, other), [0.0, 0.0], baseline, sampler=sampler()
            ),
        ),
        "qLogNEHVI with a list of models": (
            1,
            lambda: qLogNoisyExpectedHypervolumeImprovement(
                ModelList(found, other),
                [0.0, 0.0],
                baseline,
                sampler=ListSampler(sampler(), sampler()),
                cache_root=False,
            ),
        ),
        "qKG": (1, lambda: qKnowledgeGradient(found, num_fantasies=2)),
        "MES": (
            1,
            lambda: qMaxValueEntropy(found, baseline, X_pending=baseline[:1], num_fantasies=2),
        ),
    }


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.BotorchWarning")
@pytest.mark.filterwarnings("ignore::linear_operator.utils.warnings.NumericalWarning")
@pytest.mark.parametrize("num", [0, 5])
@pytest.mark.parametrize("name", ["one member", "guarded", "weighed"])
def test_model_gives_every_acquisition_a_candidate(name, num):
    found, other = model_of(PRIORS[name], num), model_of(PRIORS["one member"], num)
    cube = UnitCube(MIXED)
    baseline = torch.rand(4, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    for label, (q, acquisition) in acquisitions(found, other, baseline).items():
        candidate, value = optimize_acqf(
            acquisition(),
            cube.bounds,
            q=q,
            num_restarts=1,
            raw_samples=4,
            options={"maxiter": 3},
            post_processing_func=cube.snap,
        )
        assert candidate.shape == (q, MIXED.num_columns), label
        assert bool(torch.isfinite(candidate).all() & torch.isfinite(value).all()), label
        snapped = cube.tensor(cube.points(candidate))
        np.testing.assert_allclose(candidate.numpy(), snapped.numpy(), atol=1e-12, err_msg=label)


def constrained(found, allowed, baseline):
    """The acquisition that BoTorch has for a constraint: the second output is at most 0."""
    return qLogNoisyExpectedImprovement(
        ModelListGP(found, allowed),
        baseline,
        sampler=sampler(64),
        objective=GenericMCObjective(lambda values, X=None: values[..., 0]),
        constraints=[lambda values: values[..., 1]],
        prune_baseline=False,
    )


def test_learned_constraint_moves_the_acquisition_to_where_it_holds():
    """What is certain to be allowed scores as without the constraint, what is certain to be
    forbidden does not, and the query that is found is allowed."""
    seen, value = run_of(8)
    cube = UnitCube(MIXED)
    x, y = cube.tensor(seen), torch.tensor(value)[:, None]
    found = model(PRIORS["every kernel"], x, y)
    limit = model(PRIORS["one member"], x, 10.0 * (x[:, :1] - 0.5))
    alone = qLogNoisyExpectedImprovement(found, x, sampler=sampler(64), prune_baseline=False)
    with_limit = constrained(found, limit, x)
    pool = cube.tensor(points(200, seed=6)).unsqueeze(-2)
    posterior = limit.posterior(pool)
    surely = (posterior.mean / posterior.variance.sqrt())[:, 0, 0]
    with torch.no_grad():
        before, after = alone(pool), with_limit(pool)
    assert bool((surely > 4.0).any() & (surely < -4.0).any())
    # The best of the run counts only if it is allowed, so that others improve by more.
    assert bool((after[surely < -4.0] >= before[surely < -4.0] - 0.1).all())
    assert float(after[surely > 4.0].max()) < float(after[surely < -4.0].max())
    candidate, _ = optimize_acqf(
        with_limit, cube.bounds, 1, num_restarts=2, raw_samples=64, options={"maxiter": 20}
    )
    assert float(limit.posterior(candidate).mean) < 0.0


@pytest.mark.parametrize("coordinates", [UnitCube, UserUnits])
def test_model_is_optimised_over_categories(coordinates):
    where = coordinates(MIXED)
    seen, value = run_of(5)
    found = model(
        PRIORS["one member"], where.tensor(seen), torch.tensor(value)[:, None], coordinates=where
    )
    lower = LogExpectedImprovement(found, best_f=5.0, maximize=False)
    fixed = where.fixed_features()
    assert len(fixed) == 3
    candidate, best = optimize_acqf_mixed(
        lower, where.bounds, 1, num_restarts=1, fixed_features_list=fixed, raw_samples=4
    )
    assert torch.isfinite(candidate).all() and torch.isfinite(best)
    (point,) = where.points(candidate)
    assert point["act"] in ("relu", "tanh", "elu") and point.keys() == set(MIXED.names)


@pytest.mark.filterwarnings("ignore:Data .outcome observations. is not standardized")
def test_model_in_a_list_with_a_fitted_model():
    own, foreign = model_of(PRIORS["guarded"], 5), model_of(PRIORS["one member"], 5)
    x, y = own.train_inputs[0], own.train_Y
    plain = SingleTaskGP(x, y, outcome_transform=None)
    together = ModelListGP(own, foreign, plain)
    queries = torch.rand(2, 3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    posterior = together.posterior(queries)
    assert together.num_outputs == 3 and posterior.mean.shape == (2, 3, 3)
    np.testing.assert_allclose(
        posterior.mean[..., 0].detach(), flat(own.posterior(queries).mean), rtol=1e-9
    )
    assert together.subset_output([1]).num_outputs == 1
    assert own.subset_output([0]) is own
    pair = ModelListGP(own, foreign)
    later = pair.condition_on_observations([queries[0], queries[0]], torch.ones(3, 2).double())
    alone = own.condition_on_observations(queries[0], torch.ones(3, 1).double())
    np.testing.assert_allclose(
        later.posterior(queries[1]).mean[:, 0].detach(), flat(alone.posterior(queries[1]).mean)
    )
    assert pair.fantasize(queries[0], sampler(2)).posterior(queries[1]).mean.shape == (2, 3, 2)


def test_model_is_transformed_by_objectives():
    found = model_of(PRIORS["guarded"], 5)
    x = torch.rand(3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    negated = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    posterior = found.posterior(x, posterior_transform=negated)
    np.testing.assert_allclose(flat(posterior.mean), -flat(found.posterior(x).mean))


@pytest.mark.parametrize("name", VARIED)
def test_model_state_goes_round_without_pickle(name):
    found, other = model_of(PRIORS[name], 5), model_of(PRIORS[name], 5)
    x = torch.rand(3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    expected = flat(found.posterior(x).mean)
    with torch.no_grad():
        for buffer in other.state_dict().values():
            buffer.mul_(0.5) if buffer.is_floating_point() else None
    state = read_tensors(write_tensors(found.state_dict()))
    other.load_state_dict(state)
    np.testing.assert_array_equal(flat(other.posterior(x).mean), expected)
    again = pickle.loads(pickle.dumps(copy.deepcopy(found)))
    np.testing.assert_array_equal(flat(again.posterior(x).mean), expected)
    assert not any(p.requires_grad for p in found.parameters())
    assert found.dtypes_of_buffers <= {torch.float64, torch.bool, torch.int64}


class TestAsBotorchTestsItsModels(BotorchTestCase):
    """BoTorch installs no suite for models: its `botorch.utils.testing` has this base class, which
    fixes the device and the warnings, mixins for test functions, and mocks. So here is what its own
    tests of `SingleTaskGP` assert of any model, on its base class."""

    def test_model_keeps_the_contract_of_models(self):
        cube = UnitCube(MIXED)
        seen, value = run_of(6)
        x, y = cube.tensor(seen), torch.tensor(value)[:, None]
        for name, with_noise in itertools.product(VARIED, (False, True)):
            prior, variance = PRIORS[name], torch.full_like(y, 0.1) if with_noise else None
            found = model(prior, x, y, variance)
            self.assertEqual((found.num_outputs, found.batch_shape), (1, torch.Size()))
            queries = torch.rand(2, 3, MIXED.num_columns, dtype=torch.float64)
            posterior = found.posterior(queries)
            noisy = found.posterior(queries, observation_noise=True)
            self.assertIsInstance(posterior, GPyTorchPosterior)
            self.assertEqual(posterior.mean.shape, torch.Size([2, 3, 1]))
            self.assertTrue((noisy.variance > posterior.variance).all())
            self.assertAllClose(noisy.mean, posterior.mean)
            self.assertEqual(posterior.rsample(torch.Size([4])).shape, torch.Size([4, 2, 3, 1]))
            for batch in (torch.Size(), torch.Size([2])):
                more = torch.rand(*batch, 2, MIXED.num_columns, dtype=torch.float64)
                told = torch.rand(3, *batch, 2, 1, dtype=torch.float64)
                later = found.condition_on_observations(more, told)
                self.assertEqual(later.train_targets.shape, torch.Size([3, *batch, 8]))
                self.assertEqual(later.posterior(queries[0]).mean.shape[-2:], torch.Size([3, 1]))
                fantasies = found.fantasize(more, sampler(4))
                self.assertEqual(fantasies.batch_shape, torch.Size([4, *batch]))
            data = SupervisedDataset(
                x, y, Yvar=variance, feature_names=[*"abcdefg"], outcome_names=["y"]
            )
            again = LearnedModel(**LearnedModel.construct_inputs(data, prior=prior))
            self.assertAllClose(again.posterior(queries).mean, posterior.mean)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_model_on_a_gpu_says_the_same():
    found = model_of(PRIORS["guarded"], 5)
    x = torch.rand(3, MIXED.num_columns, dtype=torch.float64, generator=seeded())
    expected = flat(found.posterior(x).mean)
    moved = found.to("cuda").posterior(x.cuda()).mean.cpu()
    made = model(PRIORS["guarded"], *(t.cuda() for t in (found.train_X, found.train_Y)))
    np.testing.assert_allclose(flat(moved), expected, rtol=1e-8)
    np.testing.assert_allclose(flat(made.posterior(x.cuda()).mean.cpu()), expected, rtol=1e-8)


X, Y = torch.full((2, 7), 0.5, dtype=torch.float64), torch.ones(2, 1, dtype=torch.float64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[:, :6], Y), r"6 columns where UnitCube .* has 7"),
        ((X + 1.0, Y), r"Row 0 of train_X has 1.5 in column 0, outside \[0, 1\]"),
        ((X * torch.nan, Y), "Row 0 of train_X has nan"),
        ((X.float(), Y), "train_X is torch.float32; .* double precision"),
        ((X, Y.long()), "train_Y is torch.int64"),
        ((X, Y.to("meta")), "train_Y is on meta and train_X on cpu"),
        ((X, Y[:, 0]), r"train_Y has shape \(2,\); give \(2, 1\)"),
        ((X, torch.ones(2, 2).double()), "several outputs are a ModelListGP"),
        ((X[None], Y), r"train_X has shape \(1, 2, 7\); give the points of one run"),
        ((X, Y, -Y), "train_Yvar has entries that are no variance"),
        ((X, Y * torch.inf), "not finite"),
        ((X, Y, None, {"colour": "red"}), "no feature 'colour'"),
    ],
)
def test_model_says_what_is_wrong(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        model(PRIORS["one member"], *arguments)
    assert "\n" not in str(error.value)


POINT = X[:1]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.posterior(POINT[:, :6]), r"X has 6 columns where UnitCube .* has 7"),
        (lambda m: m.posterior(POINT.float()), "X is torch.float32; .* double precision"),
        (lambda m: m.posterior(POINT + 1.0), r"Row 0 of X has 1.5 in column 0, outside \[0, 1\]"),
        (lambda m: m.posterior(torch.stack([POINT, -POINT])), r"Row \(1, 0\) of X has -0.5"),
        (lambda m: m.posterior(POINT[0]), r"X has shape \(7,\); .* one point as \(1, d\)"),
        (lambda m: m.posterior(POINT.to("meta")), "X is on meta and the model on cpu"),
        (
            lambda m: m.condition_on_observations(POINT[:, :6], Y[:1]),
            r"X has 6 columns where UnitCube",
        ),
        (lambda m: m.condition_on_observations(2.0 * POINT + 0.5, Y[:1]), "outside"),
        (lambda m: m.condition_on_observations(POINT, Y[:1].float()), "Y is torch.float32"),
        (lambda m: m.condition_on_observations(POINT, Y), r"Y has shape \(2, 1\) for 1 points"),
        (lambda m: m.condition_on_observations(POINT, Y[0]), r"Y has shape \(1,\) for 1 points"),
        (lambda m: m.condition_on_observations(POINT, Y[:1] * torch.nan), "not finite"),
        (
            lambda m: m.condition_on_observations(POINT, Y[:1], noise=Y),
            r"noise has shape \(2, 1\)",
        ),
    ],
)
def test_model_says_what_is_wrong_when_it_is_asked(ask, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        ask(model_of(PRIORS["one member"], 2))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("coordinates", [UnitCube, UserUnits])
def test_coordinates_refuse_points_of_another_width(coordinates):
    where = coordinates(MIXED)
    wide = torch.full((2, where.width + 1), 0.5, dtype=torch.float64)
    for take in (where, where.points, where.snap):
        with pytest.raises(ValueError, match=f"X has {where.width + 1} columns where"):
            take(wide)


@pytest.mark.parametrize(
    "transform",
    [{"outcome_transform": Standardize(m=1)}, {"input_transform": Normalize(d=7)}],
)
def test_construct_inputs_refuses_transforms(transform):
    data = SupervisedDataset(X, Y, feature_names=[*"abcdefg"], outcome_names=["y"])
    ((name, own),) = transform.items()
    message = f"{name} is {type(own).__name__}, .*; give {name}=None"
    with pytest.raises(ValueError, match=message):
        LearnedModel.construct_inputs(data, prior=PRIORS["one member"], **transform)
    inputs = LearnedModel.construct_inputs(data, prior=PRIORS["one member"], **{name: None})
    assert LearnedModel(**inputs).posterior(X).mean.shape == (2, 1)


def test_model_says_which_priors_and_outputs_there_are():
    space = mp.Space(x=mp.Real(0.0, 1.0))
    with pytest.raises(ValueError, match="make them with the prior's own `space`"):
        model(PRIORS["one member"], X, Y, coordinates=UnitCube(space))
    with pytest.raises(ValueError, match=r"Outputs \[1\] were asked of a model with one"):
        model_of(PRIORS["one member"], 0).subset_output([1])


def test_model_refuses_a_conditional_space():
    space = mp.Space(kind=mp.Categorical(["a", "b"]), slope=mp.Real(0.0, 1.0, when={"kind": ["b"]}))
    runs = [([{"kind": "a"}, {"kind": "b", "slope": 0.5}], [0.0, 1.0])] * 2
    prior = mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())
    with pytest.raises(ValueError, match="'slope' exists only under a condition"):
        model(prior, torch.zeros(0, 3).double(), torch.zeros(0, 1).double())


class BrownianMotion(AbstractStackedKernel):
    """A kernel of another package with a NumPy form only."""

    def forward(self, a, b):
        return np.minimum(a, b.transpose(0, 2, 1)), None

    def pullback(self, tape, coefficients):
        raise NotImplementedError

    def diagonal(self, a):
        return a[..., 0]

    def diagonal_slopes(self, a):
        return np.ones_like(a)


def test_model_refuses_a_prior_with_parts_that_have_no_form_in_torch():
    belief = learned(0, 1)
    processes = replace(belief.processes, features=Unchanged(), kernel=BrownianMotion())
    space = mp.Space(x=mp.Real(0.0, 1.0))
    prior = prior_of(replace(belief, processes=processes), space=space)
    with pytest.raises(ValueError, match="BrownianMotion, .* has no form in torch; use `metaprior"):
        model(prior, torch.zeros(0, 1).double(), torch.zeros(0, 1).double())


@pytest.mark.parametrize("num", [0, 1, 30])
def test_model_of_a_learned_weighed_prior_says_what_the_prior_says(num, weighed_prior):
    rng = np.random.default_rng(num)
    x, y = rng.uniform(size=(num, 2)), rng.normal(size=num)
    cube = UnitCube(weighed_prior.space)
    found = model(weighed_prior, torch.tensor(x), torch.tensor(y)[:, None])
    queries = rng.uniform(size=(7, 2))
    posterior = weighed_prior.condition(x, y)
    assert_says_what_the_prior_says(found, posterior, queries, cube.tensor(queries))
    # Learned processes, past tasks and the averaged GP; after 30 points some are given up.
    assert len(found.conditioned) == 3 if num < 30 else len(found.conditioned) > 0


@pytest.fixture(scope="module")
def weighed_prior():
    rng = np.random.default_rng(0)
    runs = [(rng.uniform(size=(5 + i, 2)), rng.normal(size=5 + i)) for i in range(3)]
    space = mp.Space(a=mp.Real(0.0, 1.0), b=mp.Real(0.0, 1.0))
    base = mp.methods.Ensemble(mp.methods.FPacohMap(num_steps=2))
    return mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.Weighed(base))
