"""Many choices: priors, windows and the search know them by codes."""

import numpy as np
import pytest

import metaprior as mp
from metaprior.bo import Options, Window, whole_range
from metaprior.lab.policies import CompiledConfidenceBound, SurrogatePolicy
from metaprior.methods import FixedGP
from metaprior.store import PriorFileError

CHOICES = [f"resin {i}" for i in range(60)]


def learned(**given):
    space = mp.Space(x=mp.Real(0.0, 1.0), resin=mp.Categorical(CHOICES, **given))
    rng = np.random.default_rng(0)
    runs = [(space.decode(rng.uniform(size=(6, 61))), rng.normal(size=6)) for _ in range(3)]
    return mp.learn(mp.Tasks.from_runs(runs, space=space), method=FixedGP())


def a_run():
    points = [{"x": i / 10.0, "resin": CHOICES[7 * i]} for i in range(8)]
    return points, np.sin(np.arange(8.0))


def moments(belief, space, points):
    found = belief.moments(space.encode(points))
    return np.array([found.mean, found.function_variance])


def test_prior_with_many_choices_is_the_same_from_its_files(tmp_path):
    prior = learned()
    again = mp.load(prior.save(tmp_path / "prior"), space=prior.space)
    assert again.space == prior.space
    found = [
        p.condition(*a_run()).predict([{"x": 0.3, "resin": "resin 5"}]) for p in (prior, again)
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_prior_of_one_hot_choices_is_loaded_for_the_space_as_declared_today(tmp_path):
    folder = learned(one_hot=True).save(tmp_path / "prior")
    prior = mp.load(folder, space=learned().space)
    assert prior.space.num_inputs == 61
    other = mp.Space(x=mp.Real(0.0, 1.0), resin=mp.Categorical(CHOICES[1:]))
    with pytest.raises(PriorFileError, match="load it without `space`"):
        mp.load(folder, space=other)


def test_prior_has_the_derivatives_of_finite_differences():
    prior = learned()
    points, values = a_run()
    belief = prior.belief.condition(prior.space.encode(points), values)
    at = prior.space.encode([{"x": 0.33, "resin": "resin 21"}])
    step = 1e-6 * np.eye(61)[:1]
    change = (belief.moments(at + step).mean - belief.moments(at - step).mean) / 2e-6
    np.testing.assert_allclose(belief.slopes(at).mean[:, 0], change, rtol=1e-4)


@pytest.mark.parametrize("one_hot", [True, False])
def test_window_on_all_choices_shows_the_prior_itself(one_hot):
    prior = learned(one_hot=one_hot)
    named = zip(prior.space.names, prior.space.dimensions, strict=True)
    window = Window(prior.space, tuple((name, whole_range(d)) for name, d in named))
    points, values = a_run()
    own = [window.encode(point) for point in points]
    seen = window.through(prior.belief).condition(window.space.encode(own), values)
    plain = prior.belief.condition(prior.space.encode(points), values)
    np.testing.assert_allclose(
        moments(seen, window.space, own), moments(plain, prior.space, points), rtol=1e-9
    )


def test_window_knows_the_choices_of_another_order_and_takes_new_ones():
    prior = learned()
    names = ("new", *reversed(CHOICES))
    window = Window(
        prior.space, (("x", whole_range(prior.space.dimensions[0])), ("resin", Options(names)))
    )
    points, values = a_run()
    own = [window.encode(point) for point in points]
    seen = window.through(prior.belief).condition(window.space.encode(own), values)
    plain = prior.belief.condition(prior.space.encode(points), values)
    np.testing.assert_allclose(
        moments(seen, window.space, own)[0], moments(plain, prior.space, points)[0], rtol=1e-6
    )
    new = window.encode({"x": 0.2, "resin": "new"})
    assert np.isfinite(moments(seen, window.space, [new])).all()


def test_optimizer_asks_for_many_choices():
    effects = np.random.default_rng(5).normal(size=len(CHOICES))
    optimizer, asked = mp.Optimizer(learned(), seed=0), []
    for _ in range(12):
        point = optimizer.ask()
        asked.append(point["resin"])
        optimizer.tell(point, effects[CHOICES.index(point["resin"])])
    assert set(asked) <= set(CHOICES)
    assert len(set(asked)) > 2
    assert effects[CHOICES.index(asked[-1])] > effects[CHOICES.index(asked[0])]


def test_compiled_policy_refuses_codes_with_what_to_do():
    space = mp.Space(resin=mp.Categorical(CHOICES))
    surrogate = FixedGP().from_scratch(space.num_inputs)
    with pytest.raises(ValueError, match=r"more than 32 in a dimension; declare it as Categorical"):
        SurrogatePolicy(surrogate=surrogate, acquisition=CompiledConfidenceBound(), space=space)
