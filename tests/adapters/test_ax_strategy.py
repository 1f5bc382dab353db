"""Trials that Ax proposes by learned priors: what its models say, and which spaces they refuse."""

# ruff: noqa: E402 (nothing below can be imported without Ax)

import json
import math
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("ax", reason="`make oracle` installs Ax")
torch = pytest.importorskip("torch", reason="`make oracle` installs torch")
pytestmark = [
    pytest.mark.oracle,
    # Ax's own, and BoTorch's at work for it.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ax\..*"),
    pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore:Optimization failed in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Unknown solver options"),
    pytest.mark.filterwarnings("ignore:A not p.d."),
]

from ax.analysis.analysis import ErrorAnalysisCard
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement

import metaprior as mp
from metaprior.adapters.ax import AxColumns, generation_strategy
from tests.adapters.hand_made import MIXED, PRIORS, SIZE, learned, points, prior_of

RATE = RangeParameterConfig("rate", (1e-4, 1.0), "float", scaling="log")
DEPTH = RangeParameterConfig("depth", (2, 9), "int")
ACT = ChoiceParameterConfig("act", ["elu", "relu", "tanh"], "str", is_ordered=False)
WIDTH = RangeParameterConfig("width", (8, 512), "int", scaling="log")
DROP = RangeParameterConfig("drop", (-1.0, 2.0), "float")
# Neither the order of the parameters nor that of the choices is the prior's.
ALL = [DROP, WIDTH, ACT, RATE, DEPTH]


def client_of(strategy, parameters=tuple(ALL), objective="score", *, rules=None, outcomes=None):
    client = Client(random_seed=0)
    client.configure_experiment(list(parameters), parameter_constraints=rules)
    client.configure_optimization(objective, outcome_constraints=outcomes)
    client.set_generation_strategy(strategy)
    return client


def told(client, num, *, seed=1, metrics=("score",)):
    """A client that knows the values of some points."""
    rng = np.random.default_rng(seed)
    rows = points(num, seed=seed)
    results = [{name: 5.0 + 3.0 * rng.normal() for name in metrics} for _ in rows]
    for row, result in zip(rows, results, strict=True):
        client.complete_trial(client.attach_trial(row), result)
    return rows, results


def adapter_of(client):
    node = client._generation_strategy._curr
    node.update_generator_state(client._experiment, client._experiment.lookup_data())
    return node._fitted_adapter


@pytest.mark.parametrize("name", ["one member", "every kernel", "guarded", "features", "weighed"])
def test_model_in_ax_says_what_the_prior_says(name):
    prior = PRIORS[name]
    known = {"size": 9.0} if prior.features.names else None
    sign = "-" if prior.direction == "minimize" else ""
    client = client_of(generation_strategy(prior, features=known), objective=f"{sign}score")
    rows, results = told(client, 6)
    posterior = prior.condition(rows, [each["score"] for each in results], features=known)
    queries = points(10, seed=3)
    mean, std = posterior.predict(queries, noiseless=True)
    found, covariance = adapter_of(client).predict(
        [ObservationFeatures(parameters=dict(each)) for each in queries]
    )
    np.testing.assert_allclose(found["score"], mean, rtol=1e-6)
    np.testing.assert_allclose(covariance["score"]["score"], std**2, rtol=1e-6, atol=1e-9)


def test_columns_are_the_points_that_ax_means(hill_prior):
    experiment = client_of(generation_strategy(hill_prior))._experiment
    columns = AxColumns(MIXED, experiment.search_space)
    where = points(20, seed=5)
    X = columns.tensor(where)
    assert columns.names == ["drop", "width", "act", "rate", "depth"]
    np.testing.assert_allclose(X[:, 3], [math.log10(each["rate"]) for each in where])
    assert X[:, 2].tolist() == [["elu", "relu", "tanh"].index(each["act"]) for each in where]
    np.testing.assert_allclose(columns(X), MIXED.encode(where), atol=1e-12)
    assert bool(((columns.bounds[0] <= X) & (X <= columns.bounds[1])).all())
    again = columns.points(columns.snap(X))
    assert [each["act"] for each in again] == [each["act"] for each in where]
    assert [each["depth"] for each in again] == [each["depth"] for each in where]
    assert columns.fixed_features() == [{2: 0.0}, {2: 1.0}, {2: 2.0}]


def test_first_trial_is_that_of_the_prior_and_later_ones_lie_in_the_space():
    prior = PRIORS["every kernel"]
    client = client_of(generation_strategy(prior))
    ((first, x),) = client.get_next_trials(1).items()
    assert x == pytest.approx(mp.Optimizer(prior, seed=0).ask())
    client.complete_trial(first, {"score": 6.0})
    seen = [x]
    for index, x in client.get_next_trials(2).items():
        MIXED.encode([x])
        assert type(x["depth"]) is int and x not in seen
        seen.append(x)
        client.complete_trial(index, {"score": 5.0})
    (row,) = client.predict([seen[1]])
    assert np.isfinite(row["score"]).all()


def test_first_trials_side_by_side_differ_and_failures_are_not_asked_again():
    client = client_of(generation_strategy(PRIORS["guarded"]), objective="-score")
    rows = client.get_next_trials(3)
    assert len({tuple(sorted(each.items())) for each in rows.values()}) == 3
    for index in rows:
        client.mark_trial_failed(index)
    (again,) = client.get_next_trials(1).values()
    assert all(again != row for row in rows.values())


def test_parameter_constraints_and_narrower_spaces_are_respected():
    parameters = [
        RangeParameterConfig("drop", (0.0, 1.0), "float"),
        ChoiceParameterConfig("width", [16, 32, 64], "int", is_ordered=True),
        ChoiceParameterConfig("act", ["relu", "tanh"], "str", is_ordered=False),
        ChoiceParameterConfig("rate", [1e-2], "float"),
        DEPTH,
    ]
    rules = ["depth + 4 * drop <= 5"]
    client = client_of(generation_strategy(PRIORS["every kernel"]), parameters, rules=rules)
    for _ in range(2):
        for index, x in client.get_next_trials(2).items():
            assert x["depth"] + 4 * x["drop"] <= 5 + 1e-6
            assert x["rate"] == 1e-2 and x["width"] in (16, 32, 64) and x["act"] != "elu"
            client.complete_trial(index, {"score": 5.0 + x["drop"]})


def test_fixed_parameters_are_kept_before_and_after_the_first_result():
    client = client_of(generation_strategy(PRIORS["every kernel"]))
    for _ in range(2):
        ((index, x),) = client.get_next_trials(1, fixed_parameters={"depth": 7}).items()
        assert x["depth"] == 7
        client.complete_trial(index, {"score": 5.0})


PAIR = {"score": PRIORS["every kernel"], "memory": PRIORS["one member"]}
# What the prior of the memory expects all over the space.
EXPECTED = PAIR["memory"].condition([], []).predict(points(200, seed=8))[0]


def first_of(priors, *, objective="score", outcomes):
    client = client_of(generation_strategy(priors), objective=objective, outcomes=outcomes)
    return next(iter(client.get_next_trials(1).values()))


@pytest.mark.parametrize("objective", ["score", "score, -cost"])
@pytest.mark.parametrize(("op", "level"), [("<=", 0.2), (">=", 0.95)])
def test_first_trial_is_where_the_prior_of_a_constraint_expects_it_to_hold(objective, op, level):
    priors = PAIR | ({"cost": PRIORS["guarded"]} if "cost" in objective else {})
    bound = float(np.quantile(EXPECTED, level))
    x = first_of(priors, objective=objective, outcomes=[f"memory {op} {bound}"])
    below = PAIR["memory"].condition([], []).cdf([x], [bound])[0]
    assert (below if op == "<=" else 1.0 - below) >= 0.5


def test_first_trial_is_that_of_the_objective_where_the_constraint_is_expected_to_hold_anyway():
    x = first_of(PAIR, outcomes=[f"memory <= {EXPECTED.max() + 100.0}"])
    assert x == pytest.approx(mp.Optimizer(PAIR["score"], seed=0).ask())


def test_first_trial_is_least_unlikely_where_no_point_is_expected_to_be_allowed():
    lowest = float(EXPECTED.min())
    x = first_of(PAIR, outcomes=[f"memory <= {lowest - 1.0}"])
    (mean,), _ = PAIR["memory"].condition([], []).predict([x])
    assert mean <= np.quantile(EXPECTED, 0.05)


def test_acquisitions_are_qlognei_and_qlognehvi():
    both = {"score": PRIORS["every kernel"], "cost": PRIORS["one member"]}
    for priors, objective, rule, expected in [
        (PRIORS["every kernel"], "score", None, qLogNoisyExpectedImprovement),
        (PAIR, "score", ["memory <= 99"], qLogNoisyExpectedImprovement),
        (both, "score, -cost", None, qLogNoisyExpectedHypervolumeImprovement),
    ]:
        client = client_of(generation_strategy(priors), objective=objective, outcomes=rule)
        metrics = ("score", "cost", "memory") if rule or "cost" in objective else ("score",)
        told(client, 6, metrics=metrics)
        assert client.get_next_trials(1)
        generator = client._generation_strategy._curr._fitted_adapter.generator
        assert type(generator._acquisition.acqf) is expected
        models = getattr(generator.surrogate.model, "models", [generator.surrogate.model])
        assert {type(each).__name__ for each in models} == {"LearnedModel"}


def test_several_objectives_have_a_prior_each_and_thresholds_that_the_priors_expect():
    priors = {"score": PRIORS["every kernel"], "cost": PRIORS["one member"]}
    client = client_of(generation_strategy(priors), objective="score, -cost")
    for _ in range(2):
        for index, x in client.get_next_trials(2).items():
            MIXED.encode([x])
            client.complete_trial(index, {"score": 5.0 + x["drop"], "cost": float(x["depth"])})
    node = client._generation_strategy._curr
    aims = node._aims.objective_thresholds_dict
    assert set(aims) == {"score", "cost"}
    model = node._fitted_adapter.generator.surrogate.model
    assert [type(each).__name__ for each in model.models] == ["LearnedModel"] * 2


def test_threshold_of_the_user_stays():
    priors = {"score": PRIORS["every kernel"], "cost": PRIORS["one member"]}
    strategy = generation_strategy(priors)
    client = client_of(strategy, objective="score, -cost", outcomes=["cost <= 7"])
    told(client, 3, metrics=("score", "cost"))
    adapter_of(client)
    aims = client._generation_strategy._curr._aims.objective_thresholds_dict
    assert aims["cost"].bound == 7.0 and set(aims) == {"score", "cost"}


def test_constrained_outcome_without_a_prior_is_modelled_from_the_run():
    strategy = generation_strategy({"score": PRIORS["every kernel"]})
    client = client_of(strategy, outcomes=["memory <= 7"])
    told(client, 4, metrics=("score", "memory"))
    adapter = adapter_of(client)
    kinds = [type(each).__name__ for each in adapter.generator.surrogate.model.models]
    assert sorted(kinds) == ["LearnedModel", "MixedSingleTaskGP"]
    assert client.get_next_trials(1)


@pytest.mark.filterwarnings("ignore:.*out-of-design:RuntimeWarning")
def test_attached_point_outside_of_the_space_is_no_training_point():
    client = client_of(generation_strategy(PRIORS["every kernel"]))
    outside = {**points(1, seed=9)[0], "drop": 9.0}
    client.complete_trial(client.attach_trial(outside), {"score": 100.0})
    assert adapter_of(client) is None and client.get_next_trials(1)
    told(client, 3)
    (training,) = adapter_of(client).generator.surrogate.training_data
    assert len(training.X) == 3 and client.get_next_trials(1)
    # Nor is it one that is under way.
    client.attach_trial({**outside, "drop": 8.0})
    assert adapter_of(client) is not None and client.get_next_trials(1)


def _cards(group):
    """All cards of a group of analyses."""
    for card in group:
        yield from _cards(card.children) if hasattr(card, "children") else [card]


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_analyses_of_ax_take_the_learned_model(hill_prior):
    parameters = [
        RangeParameterConfig("x", (-1.0, 1.0), "float"),
        RangeParameterConfig("z", (0.0, 10.0), "float"),
    ]
    client = client_of(generation_strategy(hill_prior), parameters, objective="hill")
    for _ in range(4):
        for index, at in client.get_next_trials(1).items():
            client.complete_trial(index, {"hill": 2.0 - at["x"] ** 2})
    cards = list(_cards(client.compute_analyses(display=False)))
    names = {card.name for card in cards}
    assert {"CrossValidationPlot", "SensitivityAnalysisPlot", "SlicePlot"} <= names
    assert not [card.blob for card in cards if isinstance(card, ErrorAnalysisCard)]


IN_ANOTHER_PROCESS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import metaprior.adapters.ax
from ax.api.client import Client
client = Client.load_from_json_file(sys.argv[1])
trials = client.get_next_trials(1)
client.complete_trial(next(iter(trials)), {"hill": 1.0})
print(json.dumps([list(trials.items()), client.predict([{"x": 0.1, "z": 4.0}])[0]["hill"]]))
"""


def test_client_goes_on_after_it_was_saved_also_in_another_process(tmp_path, hill_prior):
    parameters = [
        RangeParameterConfig("x", (-1.0, 1.0), "float"),
        RangeParameterConfig("z", (0.0, 10.0), "float"),
    ]
    client = client_of(generation_strategy(hill_prior), parameters, objective="hill")
    for _ in range(2):
        for index, at in client.get_next_trials(1).items():
            client.complete_trial(index, {"hill": 2.0 - at["x"] ** 2})
    client.save_to_json_file(str(tmp_path / "client.json"))
    again = Client.load_from_json_file(str(tmp_path / "client.json"))
    query = {"x": 0.1, "z": 4.0}
    for each in (client, again):
        adapter_of(each)
    assert again.predict([query])[0]["hill"] == pytest.approx(client.predict([query])[0]["hill"])
    afresh = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(tmp_path / "client.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert afresh.returncode == 0, afresh.stderr
    (((index, x),), predicted) = json.loads(afresh.stdout.splitlines()[-1])
    assert index == 2 and -1.0 <= x["x"] <= 1.0 and 0.0 <= x["z"] <= 10.0
    assert predicted == pytest.approx(client.predict([query])[0]["hill"])
    ((index, _),) = again.get_next_trials(1).items()
    assert index == 2


LINEAR = RangeParameterConfig("rate", (1e-4, 1.0), "float")
REFUSED = {
    "parameter that the prior lacks": (
        [*ALL, RangeParameterConfig("beta", (0.0, 1.0), "float")],
        "'beta', which the prior does not know",
    ),
    "parameter missing": ([DROP, WIDTH, ACT, RATE], "lacks the parameter 'depth'"),
    "scale": ([DROP, WIDTH, ACT, LINEAR, DEPTH], 'configure it with scaling="log"'),
    "float for an integer": (
        [DROP, WIDTH, ACT, RATE, RangeParameterConfig("depth", (2, 9), "float")],
        'configure it with parameter_type="int"',
    ),
    "wider": (
        [RangeParameterConfig("drop", (-1.0, 3.0), "float"), WIDTH, ACT, RATE, DEPTH],
        "from -1 to 3 in the experiment and from -1 to 2",
    ),
    "other choice": (
        [DROP, WIDTH, ChoiceParameterConfig("act", ["relu", "gelu"], "str"), RATE, DEPTH],
        "'gelu' in the experiment, which the prior does not know",
    ),
    "range for a choice": (
        [DROP, WIDTH, RangeParameterConfig("act", (0, 2), "int"), RATE, DEPTH],
        "configure it with a ChoiceParameterConfig",
    ),
    "text for a number": (
        [ChoiceParameterConfig("drop", ["a", "b"], "str"), WIDTH, ACT, RATE, DEPTH],
        "configure it with a RangeParameterConfig",
    ),
    "choice without order": (
        [
            DROP,
            ChoiceParameterConfig("width", [16, 8, 64], "int", is_ordered=False),
            ACT,
            RATE,
            DEPTH,
        ],
        "configure it with is_ordered=True",
    ),
}


@pytest.mark.filterwarnings("ignore:.*is_ordered.*")
@pytest.mark.parametrize("name", REFUSED)
def test_space_that_the_prior_does_not_know_is_refused_in_one_sentence(name):
    parameters, message = REFUSED[name]
    client = client_of(generation_strategy(PRIORS["every kernel"]), parameters)
    with pytest.raises(ValueError, match=message) as caught:
        client.get_next_trials(1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("priors", "objective", "message"),
    [
        (PRIORS["every kernel"], "-score", "minimises 'score' and its prior was learned to max"),
        (PRIORS["every kernel"], "score, -cost", "2 objectives and there is one prior"),
        ({"score": PRIORS["every kernel"]}, "score, -cost", "'cost' has no prior"),
        ({"other": PRIORS["every kernel"]}, "score", "prior for the metric 'other'"),
        (PRIORS["every kernel"], "score + 2 * cost", "is a sum of metrics"),
    ],
)
def test_metrics_without_their_prior_are_refused(priors, objective, message):
    client = client_of(generation_strategy(priors), objective=objective)
    with pytest.raises(ValueError, match=message):
        client.get_next_trials(1)


def test_strategy_of_something_else_is_refused():
    with pytest.raises(TypeError, match="score"):
        generation_strategy({"score": "prior/"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="is empty"):
        generation_strategy({})


def test_prior_under_conditions_is_refused():
    space = mp.Space(a=mp.Categorical([False, True]), b=mp.Real(0.0, 1.0, when={"a": [True]}))
    prior = prior_of(learned(0, space.num_columns), space=space)
    client = client_of(generation_strategy(prior), [RangeParameterConfig("b", (0.0, 1.0), "float")])
    with pytest.raises(ValueError, match="'b' of the prior exists only under a condition"):
        client.get_next_trials(1)


def test_feature_that_the_prior_does_not_know_is_refused():
    prior = prior_of(learned(4, MIXED.num_columns + 1), features=SIZE)
    client = client_of(generation_strategy(prior, features={"rows": 3.0}))
    with pytest.raises(ValueError, match="rows"):
        client.get_next_trials(1)
