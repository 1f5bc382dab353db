"""Priors of formats 1 and 2, written by the last version that had it: they load and predict as
before.

Each was learned from four runs of five points; `predictions.json` has what that version predicted
at `POINTS` after observing `RUN`.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import metaprior as mp
from metaprior.findings import PredictionScores
from metaprior.methods import FixedGP, FPacohMap, Guarded, Weighed
from metaprior.store import PriorFileError
from metaprior.store._migration import from_format_1
from tests.saved import arrays_of, reseal

FOLDER = Path(__file__).parent / "format_1"
EARLIER = [
    (folder / name, predictions)
    for folder in (FOLDER, Path(__file__).parent / "format_2")
    for name, predictions in json.loads((folder / "predictions.json").read_text()).items()
]
WEIGHED = Path(__file__).parent / "format_2" / "weighed_fpacoh_map"
RUN = ([{"x": 0.0}, {"x": 1.0}], [-0.2, -0.3])
POINTS = [{"x": -0.5}, {"x": 0.4}, {"x": 1.5}]


def assert_within(written, found):
    """Every value in the JSON `written` is at its place in `found`."""
    if isinstance(written, dict):
        for key, value in written.items():
            assert_within(value, found[key])
    elif isinstance(written, list):
        assert len(written) == len(found)
        for value, other in zip(written, found, strict=True):
            assert_within(value, other)
    else:
        assert written == found


@pytest.mark.parametrize(
    ("folder", "predictions"), EARLIER, ids=lambda value: getattr(value, "name", "")
)
def test_load_of_earlier_formats_predicts_as_it_did(folder, predictions, tmp_path):
    prior = mp.load(folder)
    again = mp.load(prior.save(tmp_path / "prior"))
    for each in (prior, again):
        mean, std = each.condition(*RUN).predict(POINTS)
        np.testing.assert_allclose(mean, predictions["mean"], rtol=1e-9)
        np.testing.assert_allclose(std, predictions["std"], rtol=1e-9)


def test_load_reads_the_earlier_name_of_a_weight(tmp_path):
    """Files of format 3 had it too, before the first release."""
    folder = mp.load(WEIGHED).save(tmp_path / "prior")

    def earlier(description):
        method = dict(description["method"])
        method["plain_weight"] = 2 * method.pop("averaged_weight")
        return description | {"method": method}

    reseal(folder, description=earlier)
    method = mp.load(folder).method
    assert isinstance(method, Weighed) and method.averaged_weight == 0.1


def test_save_replaces_the_arrays_of_an_earlier_format(tmp_path):
    for path in (FOLDER / "vanilla_gp").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    mp.load(tmp_path).save(tmp_path)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"README.md", "prior.json", arrays_of(tmp_path).name}


def test_load_of_format_1_renames_the_methods():
    assert mp.load(FOLDER / "vanilla_gp").method == FixedGP(lengthscale=0.3)
    assert mp.load(FOLDER / "guarded_vanilla_gp").method == Guarded(FixedGP())
    method = mp.load(FOLDER / "fpacoh_map").method
    assert isinstance(method, FPacohMap) and method.num_steps == 3


def test_load_of_format_1_reads_every_finding():
    written = json.loads((FOLDER / "learned" / "prior.json").read_text())["findings"]
    findings = mp.load(FOLDER / "learned").findings
    assert findings is not None and findings.held_out is not None and findings.replay is not None
    assert findings.verdict == written["verdict"] and findings.seconds == written["seconds"]
    vanilla = written["held_out"]["vanilla"]
    assert findings.held_out.baseline == PredictionScores(
        coverage=tuple(vanilla["coverage"]),
        calibration_error=vanilla["calibration_error"],
        log_likelihood=vanilla["log_likelihood"],
        log_likelihood_by_context=tuple(vanilla["log_likelihood_by_context"]),
        error_by_context=tuple(vanilla["error_by_context"]),
    )
    assert list(findings.replay.baseline) == written["replay"]["vanilla"]
    assert [row.baseline_log_likelihood for row in findings.tasks] == [
        row["vanilla_log_likelihood"] for row in written["tasks"]
    ]
    # Everything else has kept its name; what is measured today may be more.
    renamed = json.loads(json.dumps(written).replace('"vanilla', '"baseline'))
    assert_within(renamed, findings.to_json())
    with pytest.raises(AssertionError):
        assert_within({**renamed, "seconds": -1.0}, findings.to_json())


def test_load_of_format_1_without_findings_has_none():
    assert mp.load(FOLDER / "vanilla_gp").findings is None


def test_save_of_a_format_1_prior_writes_the_newest(tmp_path):
    loaded = mp.load(FOLDER / "learned")
    folder = loaded.save(tmp_path / "prior")
    written = json.loads((folder / "prior.json").read_text())
    assert written["format_version"] == 3 and "vanilla" not in json.dumps(written)
    assert loaded.findings is not None and loaded.findings.seconds is not None
    # How long it took is no longer written down.
    assert mp.load(folder).findings == replace(loaded.findings, seconds=None)


def test_from_format_1_keeps_the_users_own_names():
    findings = {"examples": [{"points": [{"vanilla": 1.0}], "values": [2.0]}]}
    found = from_format_1({"method": {"name": "FixedGP"}, "findings": findings})
    assert found["findings"] == findings


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"findings": {"verdict": "", "held_out": {"vanilla": 3}}}, "'findings.held_out.baseline'"),
        ({"findings": [3]}, "'findings' is"),
        ({"method": "VanillaGP"}, "damaged"),
        ({"method": {"name": ["VanillaGP"]}}, "damaged"),
    ],
)
def test_load_of_a_damaged_format_1_is_one_sentence(tmp_path, change, problem):
    for path in (FOLDER / "vanilla_gp").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    description = json.loads((tmp_path / "prior.json").read_text())
    (tmp_path / "prior.json").write_text(json.dumps(description | change))
    with pytest.raises(PriorFileError) as caught:
        mp.load(tmp_path)
    assert problem in str(caught.value) and "\n" not in str(caught.value)
