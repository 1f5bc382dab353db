"""The page: complete, well formed, self-contained, small, and safe whatever the names are."""

import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import numpy as np
import pytest

import metaprior as mp
from metaprior.findings import (
    INTERRUPTED,
    NOTHING_MEASURED,
    Example,
    Findings,
    HeldOutScores,
    PastTask,
    PredictionScores,
    Replay,
)
from metaprior.report import write_report
from tests.report.made_up import LINE, SPACE, findings_for, make_runs

SECTIONS = [
    "first",
    "matters",
    "prior",
    "held-out",
    "replay",
    "posteriors",
    "past-runs",
    "trained-on",
    "settings",
    "notes",
    "meaning",
]
# Without findings; what matters is not shown of a prior whose mean is constant.
BARE = ["first", "prior", "trained-on", "settings", "notes", "meaning"]
VOID = {"meta"}
MOST_BYTES = 2_000_000


class Reader(HTMLParser):
    """Tags that are opened and closed in order, what they carry, and the text between them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, name):
        return [value for attribute, value in self.attributes if attribute == name]


def read(path):
    return Reader(path.read_text(encoding="utf-8"))


def sections_of(path):
    return re.findall(r'<section id="([^"]+)"', path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def path(prior, tmp_path_factory):
    return write_report(prior, tmp_path_factory.mktemp("full") / "deep" / "report.html")


@pytest.fixture(scope="module")
def line_prior():
    """Of one variable, drawn in no time."""
    tasks = mp.Tasks.from_runs(make_runs(LINE, 3, 6), space=LINE)
    return mp.learn(tasks, method=mp.methods.FixedGP())


def test_report_has_every_section_in_order(path):
    assert sections_of(path) == SECTIONS
    page = read(path)
    for words in (
        "This prior is calibrated and saves about 7 evaluations.",
        "To maximize accuracy in points over 5 dimensions, learned from 8 runs.",
        "7.3 95 % interval 4.1 to 10.2 replay of 8 held-out runs, relative to the averaged GP",
        "0.041 95 % interval 0.031 to 0.076 0 is perfect; averaged GP : 0.173 (0.120 to 0.210)",
        "1.23 95 % interval 1.10 to 1.40 nats per observation, higher is better; averaged GP : "
        "−0.42 (−0.61 to −0.20)",
        "observations: 120",
        "learning_rate real, log 0.0001 to 0.1",
        "8 runs were held out in 4 folds",
        "batch 7: after 5 points, along",
        "batch 8: after 5 points, along",
        "batch 11 does not fit the others: predicted from the other runs, its log-likelihood is "
        "0.90 where the median run has 0.93. Check it:",
        "Run Points Learned prior Averaged GP Gain batch 11 check it 15 0.90 0.24 0.66",
        "run 7 15 0.80 0.26 0.54",
        "32 settings were tried on held-out runs in 31 s (budget: normal).",
        "An ensemble of 3.",
        "One run does not agree with the others.",
        "When not to use it",
    ):
        assert words in page.text, words
    # Three of held-out runs, the replay, a slice for each dimension, two posteriors.
    assert page.tags.count("svg") == page.tags.count("figure") == 3 + 1 + 5 + 2
    assert page.tags.count("h1") == 1 and page.tags.count("title") == 1


def test_report_fetches_nothing_and_runs_nothing(path):
    text, page = path.read_text(encoding="utf-8"), read(path)
    assert "//" not in text and "@import" not in text
    assert not {"script", "link", "img", "iframe", "object", "image"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert all(value.startswith("#") for value in page.all("href"))
    assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)\)", text))
    assert len(text.encode()) < MOST_BYTES


def test_report_ids_are_unique_and_references_resolve(path):
    text, page = path.read_text(encoding="utf-8"), read(path)
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    referred = re.findall(r'(?:url\(|href=")#([^)"]+)', text) + page.all("aria-labelledby")
    assert referred and set(referred) <= set(ids)


def test_report_figures_have_labels_and_keep_their_text(path):
    text = path.read_text(encoding="utf-8")
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    for drawing in drawings:
        assert re.search(r'role="img" aria-label="[^"]{20,}"', drawing), drawing[:200]
        assert "<text" in drawing and "font-family" not in drawing
        # Colours are the page's, for light, dark and paper.
        assert "var(--" in drawing and not re.search(r"#(222222|0072b2|d55e00)", drawing.lower())
    # The right end of the curve of errors: 0.05 + 0.35 exp(-3.5), times the spread of 0.2.
    assert "in points. learned prior: 0.0121 at 15;" in text


def test_report_axes_carry_the_name_and_unit_of_the_value(path):
    drawings = re.findall(r"<svg.*?</svg>", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    slices = [each for each in drawings if "Prior along" in each or "Posterior along" in each]
    assert len(slices) == 7
    assert all(">accuracy in points</text>" in each for each in slices)
    [error] = [each for each in drawings if "Prediction error" in each]
    assert ">error in points</text>" in error


def test_report_defines_every_number_that_it_shows(path):
    text, page = path.read_text(encoding="utf-8"), read(path)
    defined = re.findall(r'<dt id="means-([^"]+)">', text)
    linked = set(re.findall(r'href="#means-([^"]+)"', text))
    assert linked <= set(defined) and len(defined) == len(set(defined)) == 11
    assert {"saved", "calibration", "likelihood", "regret", "band", "variance"} <= linked
    for words in (
        "values divided by the standard deviation of all past values (0.200 points)",
        "in points; all past values have a standard deviation of 0.200 points",
        "Found by replaying 8 held-out runs",
        "best (its highest) value",
    ):
        assert words in page.text, words


def test_report_names_the_baseline_of_its_findings_and_an_unknown_unit(line_prior, tmp_path):
    """Findings of an earlier version: another baseline, and errors without the spread."""
    found = findings_for(make_runs(LINE, 3, 6))
    assert found.held_out is not None
    held_out = replace(found.held_out, spread=None)
    findings = replace(found, held_out=held_out, baseline="fitted <GP>")
    page = read(write_report(replace(line_prior, findings=findings), tmp_path / "r.html"))
    assert "veraged GP" not in page.text and page.text.count("itted <GP>") >= 8
    assert "squared error of the same predictions, in units of the past values' spread" in page.text
    assert "in units of the standard deviation of all past values" in page.text


def test_report_asks_to_check_an_outlier_and_not_to_drop_it(path):
    words = read(path).text
    assert "keep it: new tasks may be like that, too" in words
    assert "learning without" not in words


def test_report_shows_what_matters_as_bars(path):
    text, page = path.read_text(encoding="utf-8"), read(path)
    bars = re.findall(r'class="alone" style="width: ([\d.]+)%"', text)
    assert len(bars) >= 5 and all(0.0 <= float(bar) <= 100.0 for bar in bars)
    assert "The prior mean varies over the space, with a standard deviation of" in page.text
    assert re.search(r"learning_rate \d+ %, \d+ % with others", page.text)


def test_report_on_a_prior_without_findings(bare_prior, tmp_path):
    path = write_report(bare_prior, tmp_path / "report.html")
    page = read(path)
    assert sections_of(path) == [BARE[0], "matters", *BARE[1:]]
    assert NOTHING_MEASURED.verdict in page.text and "kappa 0.05" in page.text
    assert "Learned by FPacohMap." in page.text and "outlier" not in page.text
    assert "averaged GP :" not in page.text and "means-saved" not in path.read_text()


@pytest.mark.slow
def test_report_is_the_same_for_the_same_prior(line_prior, tmp_path):
    prior = replace(line_prior, findings=findings_for(make_runs(LINE, 3, 6)))
    paths = [write_report(prior, tmp_path / f"{i}.html") for i in range(2)]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert set(SECTIONS) - set(sections_of(paths[0])) == {"matters"}


def partial_findings():
    full = findings_for(make_runs(LINE, 3, 6))
    for field in fields(Findings):
        yield field.name, replace(Findings(""), **{field.name: getattr(full, field.name)})
    scores = PredictionScores(calibration_error=0.1)
    yield "one score", Findings("", held_out=HeldOutScores(learned=scores))
    levels = HeldOutScores(levels=(0.5,), learned=PredictionScores(coverage=(0.4,)))
    yield "one model", Findings("", held_out=levels)
    yield "hole in a curve", Findings("", replay=Replay(steps=(1, 2), learned=(0.5, None)))
    yield "bare rows", Findings("", tasks=(PastTask(0),), examples=(Example(),))


@pytest.mark.parametrize(
    "findings", [pytest.param(found, id=name) for name, found in partial_findings()]
)
def test_report_shows_findings_of_which_any_part_is_absent(line_prior, tmp_path, findings):
    path = write_report(replace(line_prior, findings=findings), tmp_path / "report.html")
    assert set(BARE) <= set(sections_of(path))
    assert "nan" not in read(path).text.lower().split()


def test_report_mentions_an_interruption(line_prior, tmp_path):
    path = write_report(
        replace(line_prior, findings=Findings("", interrupted=True)), tmp_path / "r.html"
    )
    assert INTERRUPTED in read(path).text


HOSTILE = {
    "<script>alert(1)</script>&\"'": mp.Real(0.0, 1.0),
    "x" * 60: mp.Real(1e-3, 1e7, log=True),
    "學習率 $\\frac{a}$ \x00\ud800": mp.Real(1e5, 1e6),
    "مرحبا": mp.Categorical(
        ["</text><script>", ' id="coverage"', "$x$", "日本", True, 3.5, *"abcdef"]
    ),
    "few": mp.Integer(1, 3, log=True),
    "many": mp.Integer(0, 10**6),
    "narrow": mp.Real(1.1, 1.9, log=True),
    **{f"dimension {i}": mp.Real(0.0, 1.0) for i in range(23)},
}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    space = mp.Space(**HOSTILE)
    runs = make_runs(space, 3, 6)
    tasks = mp.Tasks.from_runs(runs, space=space, direction="minimize")
    findings = findings_for(runs)
    assert findings.held_out is not None
    far_below = (-900.0, -20.0, 0.0, 0.0, 0.0, None)
    baseline = replace(findings.held_out.baseline, log_likelihood_by_context=far_below)
    findings = replace(
        findings,
        verdict="<b>expect</b> no gain",
        notes=("<img src=x onerror=alert(1)>",),
        held_out=replace(findings.held_out, baseline=baseline),
        tasks=tuple(PastTask(i, 6, outlier=i in (700, 900)) for i in range(1000)),
    )
    prior = mp.learn(tasks, method=mp.methods.FixedGP())
    return write_report(replace(prior, findings=findings), tmp_path_factory.mktemp("h") / "r.html")


@pytest.mark.slow
def test_report_escapes_names(hostile):
    page = read(hostile)
    assert not {"script", "img", "b", "i"} & set(page.tags)
    for words in ("<script>alert(1)</script>&\"'", "<b>expect</b> no gain", "onerror=alert(1)"):
        assert words in page.text
    # A choice that looks like an attribute, cut to fit below the axis, is still what it was.
    assert any(word.strip() == 'id="coverag…' for word in page.words)
    assert "\ufffd\ufffd" in page.text and "日本" in page.text and "$x$" in page.text


@pytest.mark.slow
def test_report_cuts_and_counts_many_dimensions_choices_and_runs(hostile):
    page = read(hostile)
    assert "12 of 30 dimensions" in page.text
    assert page.tags.count("svg") == 3 + 1 + 12 + 2
    assert "The first 8 of 12 choices." in page.text
    assert "Much lower values are cut off." in page.text
    assert "run 701, run 901 do not fit the others" in page.text
    assert "950 more runs are not listed." in page.text
    listed = page.text[page.text.index("Learned prior Averaged GP Gain") :]
    first = (
        "Learned prior Averaged GP Gain run 701 check it 6 – – – run 901 check it 6 – – – run 1 6"
    )
    assert listed.startswith(first)
    assert " run 48 6 – – – " in listed and " run 49 6 – – – " not in listed
    assert len(hostile.read_bytes()) < MOST_BYTES


def test_report_slices_are_those_of_the_prior(bare_prior):
    from metaprior.plots import middle_of, slices_through

    middle = middle_of(SPACE)
    assert middle["activation"] == "relu" and middle["momentum"] == pytest.approx(0.495)
    slices = slices_through(bare_prior.condition([], []).mean_and_band, SPACE, middle, SPACE.names)
    along = {each.name: each for each in slices}
    assert along["depth"].values == [1, 2, 3, 4, 5, 6]
    lr = along["learning_rate"]
    np.testing.assert_allclose(lr.places[[0, -1]], [-4.0, -1.0])
    for i in (0, 20, len(lr.values) - 1):
        mean, std = bare_prior.condition([], []).predict(
            [{**middle, "learning_rate": lr.values[i]}]
        )
        assert lr.mean[i] == pytest.approx(mean[0], rel=1e-9)
        ends = mean[0] - 1.959963984540054 * std[0], mean[0] + 1.959963984540054 * std[0]
        assert (lr.lower[i], lr.upper[i]) == pytest.approx(ends, rel=1e-9)
    assert lr.influence == pytest.approx(lr.mean.max() - lr.mean.min())


def test_write_report_replaces_an_earlier_report_and_nothing_else(line_prior, tmp_path):
    path = tmp_path / "report.html"
    write_report(line_prior, path)
    path.write_text(path.read_text() + "<!-- old -->")
    write_report(line_prior, path)
    assert "<!-- old -->" not in path.read_text() and [path] == list(tmp_path.iterdir())
    for content in ("", "<html>my thesis</html>"):
        path.write_text(content)
        with pytest.raises(ValueError, match="a file that is not a report is there; name another"):
            write_report(line_prior, path)
        assert path.read_text() == content
    with pytest.raises(ValueError, match="it is a folder; name a file"):
        write_report(line_prior, tmp_path)


def test_write_report_leaves_nothing_after_a_failed_write(line_prior, tmp_path, monkeypatch):
    def disk_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", disk_full)
    with pytest.raises(ValueError, match="no space left on device"):
        write_report(line_prior, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_write_report_names_a_missing_matplotlib(line_prior, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'metaprior\[plots\]'"):
        write_report(line_prior, tmp_path / "report.html")
