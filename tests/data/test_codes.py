"""Codes: what models see of a category with more than 32 choices, at a fixed width."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metaprior as mp
from metaprior.data import fit_standardiser
from metaprior.data.csv import read_space, write_space

MANY = mp.Categorical([f"resin {i}" for i in range(300)])
PLAIN = mp.Space(x=mp.Real(0.0, 1.0), resin=MANY, n=mp.Integer(1, 9))
NESTED = mp.Space(
    x=mp.Real(0.0, 1.0),
    kind=mp.Categorical(["a", "b"]),
    resin=mp.Categorical(MANY.choices, when={"kind": ["a"]}),
    heat=mp.Real(0.0, 1.0, when={"kind": ["b"]}),
)


def some_units(space, num=40):
    unit = np.random.default_rng(0).uniform(size=(num, space.num_columns))
    return space.encode(space.decode(unit))


def seen_of(num):
    space = mp.Space(c=mp.Categorical(range(num)))
    return space.embed(np.eye(num))


def test_codes_of_two_choices_differ_in_a_third_of_24_columns_or_more():
    seen = seen_of(1000)
    assert seen.shape == (1000, 24)
    differing = np.array([np.sum(np.abs(seen - own) > 1e-12, axis=1) for own in seen])
    assert np.min(differing[~np.eye(1000, dtype=bool)]) >= 8
    distances = np.sum((seen[:, None] - seen) ** 2, axis=2)
    assert np.isclose(distances.sum() / (1000 * 999), 2.0, rtol=0.01)


@pytest.mark.parametrize("num", [33, 40, 64, 300])
def test_codes_use_every_column_and_start_alike(num):
    seen = seen_of(num)
    assert np.all(seen.std(axis=0) > 0.1)
    np.testing.assert_array_equal(seen, seen_of(1000)[:num])


def test_up_to_32_choices_are_seen_as_they_are():
    space = mp.Space(c=mp.Categorical(range(32)), x=mp.Real(0.0, 1.0))
    unit = some_units(space)
    assert space.codes is None
    assert space.embed(unit) is unit
    assert not space.is_embedded
    assert "one_hot" not in space.to_json()["dimensions"][0]


@pytest.mark.parametrize("space", [PLAIN, NESTED])
def test_points_come_back_from_what_models_see(space):
    unit = some_units(space)
    seen = space.embed(unit)
    assert seen.shape == (40, space.num_inputs)
    assert space.num_inputs == space.num_coded + space.num_added < 30
    assert space.decode(space.points_of(seen)) == space.decode(unit)


def test_embed_in_jax_is_that_in_numpy():
    unit = some_units(NESTED)
    np.testing.assert_allclose(NESTED.embed(jnp.asarray(unit), jnp), NESTED.embed(unit), atol=1e-6)


@pytest.mark.parametrize("space", [PLAIN, NESTED])
def test_slopes_of_what_models_see_are_those_of_finite_differences(space):
    # Middles of numbers: away from the ends, where there are no differences on both sides.
    unit, rng = some_units(space, 3), np.random.default_rng(1)
    unit[:, space.is_real] = 0.2 + 0.6 * unit[:, space.is_real]
    cotangent = rng.normal(size=(3, space.num_inputs))
    found = space.embed_slopes(unit, cotangent)
    for column in np.flatnonzero(space.is_real):
        step = 1e-6 * np.eye(space.num_columns)[column]
        change = (space.embed(unit + step) - space.embed(unit - step)) / 2e-6
        np.testing.assert_allclose(found[:, column], np.sum(change * cotangent, axis=1), atol=1e-7)


@settings(deadline=None, max_examples=30)
@given(num=st.integers(2, 90), one_hot=st.booleans())
def test_written_space_says_which_code_it_has(num, one_hot):
    space = mp.Space(c=mp.Categorical(range(num), one_hot=one_hot))
    assert mp.Space.from_json(space.to_json()) == space
    assert space.num_inputs == (num if one_hot or num <= 32 else 24)


@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("num", [32, 33])
def test_space_file_says_which_code_it_has(num, one_hot, tmp_path):
    space = mp.Space(c=mp.Categorical(range(num), one_hot=one_hot))
    path = write_space(space, tmp_path / "space.toml")
    assert read_space(path) == space
    assert ("one_hot" in path.read_text()) == ("one_hot" in repr(space)) == (one_hot and num > 32)


def test_space_written_by_an_older_version_stays_one_hot():
    old = {"dimensions": [{"name": "c", "type": "categorical", "choices": list(range(64))}]}
    space = mp.Space.from_json(old)
    assert space.num_inputs == 64
    assert space.to_json() == old
    today = mp.Space(c=mp.Categorical(range(64)))
    assert today != space
    assert today.matches(space)
    assert not today.matches(mp.Space(c=mp.Categorical(range(65))))


def test_more_than_1000_choices_are_refused_with_what_to_do():
    with pytest.raises(
        ValueError, match=r"has 1,001 choices, such as 0, and 1,000.*group the rare"
    ):
        mp.Categorical(range(1001))
    with pytest.raises(TypeError, match="`one_hot` of Categorical is 1; give True or False"):
        mp.Categorical(range(64), one_hot=1)


@pytest.mark.parametrize("space", [PLAIN, NESTED])
def test_tasks_keep_their_points_beside_features(space):
    rng = np.random.default_rng(0)
    runs = [(space.decode(some_units(space, 5)), rng.normal(size=5)) for _ in range(40)]
    features = [{"site": f"s{i % 36}", "size": float(i)} for i in range(40)]
    tasks = mp.Tasks.from_runs(runs, space=space, features=features)
    larger = tasks.with_feature_columns(tasks.features)
    assert larger.x.shape[2] == larger.space.num_inputs == space.num_inputs + 37
    np.testing.assert_array_equal(larger.x[:, :, larger.point_columns], tasks.x)
    points, _ = tasks.run(3)
    assert [p.get("resin") for p in points] == [p.get("resin") for p in runs[3][0]]


def test_conditional_codes_have_the_units_of_uniform_choices():
    unit = some_units(NESTED, 60)[None]
    seen, mask = NESTED.embed(unit), np.ones((1, 60), bool)
    standardiser = fit_standardiser(seen, np.zeros((1, 60)), mask, NESTED)
    every = np.zeros((300, NESTED.num_columns))
    every[:, 1], every[:, 3:303] = 1.0, np.eye(300)
    codes = NESTED.embed(every)[:, 3:27]
    np.testing.assert_allclose(standardiser.x_mean[3:27], codes.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(standardiser.x_std[3:27], codes.std(axis=0), rtol=1e-6)
