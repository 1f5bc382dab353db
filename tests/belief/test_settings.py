"""The settings that files are checked by are those of the methods."""

import dataclasses
from typing import get_type_hints

import pytest

from metaprior.belief._settings import KINDS, are_complete
from metaprior.lifelong import untrained_prior
from metaprior.methods import SelfStandardisedGP, TrainedContents, known_methods


@pytest.mark.parametrize("name", sorted(KINDS))
def test_settings_kinds_are_the_fields_of_the_method(name):
    method = known_methods()[name]
    kinds, types = KINDS[name], get_type_hints(method)
    assert kinds.keys() == {field.name for field in dataclasses.fields(method)}
    examples = {int: 3, float: 0.5, bool: True, str: "text"}
    for setting, fits in kinds.items():
        for kind, example in examples.items():
            # A whole number is a number, and JSON may write it so.
            expected = types[setting] is kind or (types[setting] is float and kind is int)
            assert fits(example) == expected, (setting, example)


def test_settings_are_complete_refuses_missing_unknown_and_wrong_ones():
    settings = {"name": "RankWeightedGP", "num_steps": 3, "num_samples": 4, "discard_quantile": 0.9}
    assert are_complete(settings)
    assert not are_complete(settings | {"magic": 1})
    assert not are_complete(settings | {"num_steps": "3"})
    assert not are_complete({k: v for k, v in settings.items() if k != "num_steps"})
    assert not are_complete(settings | {"name": "Oracle"})


def test_untrained_prior_is_the_method_with_its_default_settings(hill_space):
    """It is written down, so that a first run needs no JAX."""
    method, prior = SelfStandardisedGP(), untrained_prior(hill_space, "maximize")
    trained = TrainedContents(method, method.blank_surrogate(2))
    assert dict(prior.contents.settings) == dict(trained.settings)
    assert prior.contents.arrays.keys() == trained.arrays.keys()
    for path, array in trained.arrays.items():
        assert prior.contents.arrays[path] == pytest.approx(array, rel=1e-12)
