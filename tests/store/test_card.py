"""The model card: what was measured stands in it, beside the vanilla GP's numbers."""

from dataclasses import replace

import pytest

import metaprior as mp
from metaprior.methods import Ensemble, FPacohMap, Guarded
from metaprior.report._findings import NOT_MEASURED
from metaprior.store._card import method_name, model_card, settings_in_words

FINDINGS = {
    "verdict": "This prior is calibrated\nand saves about 7 evaluations.",
    "held_out": {
        "learned": {"calibration_error": 0.0412, "log_likelihood": 1.236},
        "vanilla": {"calibration_error": 0.2, "log_likelihood": -0.5},
    },
    "replay": {"saved_evaluations": 7.34, "saved_interval": [4.1, 10.26]},
    "notes": ["Only 2 past runs."],
    "interrupted": True,
}


@pytest.fixture(scope="module")
def prior():
    runs = [([[0.1], [0.5]], [0.0, 1.0]), ([[0.2]], [0.5])]
    space = mp.Space(**{"a `b`\nc": mp.Real(0.0, 1.0)})
    return mp.learn(mp.Tasks.from_runs(runs, space=space), method=mp.methods.FixedGP())


def test_what_was_measured(prior):
    card = model_card(replace(prior, findings=FINDINGS))
    for line in (
        "**This prior is calibrated and saves about 7 evaluations.**",
        "| calibration error (0 is perfect) | 0.041 | 0.200 |",
        "| log-likelihood (higher is better) | 1.24 | −0.50 |",
        "| evaluations saved | 7.3 (95 % interval 4.1 to 10.3) | – |",
        "- Only 2 past runs.",
        "## When not to use it",
    ):
        assert line in card.splitlines(), line
    assert "interrupted" in card and "the longest has 2 points" in card


def test_nothing_was_measured(prior):
    card = model_card(prior)
    assert f"**{NOT_MEASURED}**" in card.splitlines()
    assert "On held-out runs" not in card and "## Notes" not in card
    assert "## Method: FixedGP" in card and "- `lengthscale`: 0.2" in card


def test_a_name_with_backticks_stays_one_name(prior):
    assert "- ``a `b` c``: Real(0.0, 1.0)" in model_card(prior).splitlines()


def test_methods_inside_a_method_are_named():
    method = Guarded(Ensemble(FPacohMap(kappa=0.125), 3))
    assert method_name(method) == "Guarded(Ensemble(FPacohMap))"
    settings = settings_in_words(method)
    assert settings["FPacohMap.kappa"] == 0.125 and settings["Ensemble.members"] == 3
    assert not [value for value in settings.values() if isinstance(value, dict)]
