"""The report on a prior over a space with conditions: slices only where dimensions exist."""

from dataclasses import replace

import pytest

import metaprior as mp
from metaprior.plots import middle_of, slices_through
from metaprior.report import write_report
from tests.report.made_up import findings_for, make_runs

SPACE = mp.Space(
    kind=mp.Categorical(["tree", "linear", "none"]),
    eta=mp.Real(1e-3, 1.0, log=True, when={"kind": ["tree"]}),
    depth=mp.Integer(2, 10, step=2, when={"kind": ["tree"]}),
    solver=mp.Categorical(["a", "b"], when={"kind": ["linear"]}),
    alpha=mp.Real(0.0, 1.0, when={"solver": ["b"]}),
    share=mp.Real(0.0, 1.0, step=0.25),
)


@pytest.fixture(scope="module")
def prior():
    runs = make_runs(SPACE, 6, 12)
    prior = mp.learn(mp.Tasks.from_runs(runs, space=SPACE), method=mp.methods.FixedGP(), seed=0)
    return replace(prior, findings=findings_for(runs))


def test_conditional_slices_go_through_points_that_exist(prior):
    slices = slices_through(
        prior.condition([], []).mean_and_band, SPACE, middle_of(SPACE), SPACE.names
    )
    found = {along.name: along.values for along in slices}
    assert found["depth"] == [2, 4, 6, 8, 10]
    assert found["share"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert found["kind"] == ["tree", "linear", "none"]
    assert len(found["alpha"]) > 20
    for along in slices:
        assert len(along.mean) == len(along.values) == len(along.places)


def test_conditional_report_names_where_dimensions_exist(prior, tmp_path):
    text = write_report(prior, tmp_path / "report.html").read_text()
    assert "only if kind is tree" in text
    assert "2 to 10 in steps of 2" in text
    assert "only if solver is b" in text


def test_conditional_card_shows_conditions_and_steps(prior, tmp_path):
    card = (prior.save(tmp_path / "prior") / "README.md").read_text()
    assert "step=2, when={'kind': ['tree']}" in card
