"""Numbers as people write them, names as the paper writes them, and the numbers that it prints."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaprior.lab.plots._looks import METHODS, in_order, looks_of, title_of
from metaprior.lab.plots._published import CALIBRATION_ERROR, LOG_LIKELIHOOD
from metaprior.lab.plots._tables import Bold, Estimate, ResultTable, estimate_text, latex, markdown

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("mean", "half_width", "expected"),
    [
        (0.0953, 0.0062, "0.0953 ± 0.0062"),
        (-1.8541, 0.1512, "-1.85 ± 0.15"),
        (1.3e-5, 2.1e-6, "(1.30 ± 0.21)e-5"),
        (0.5, 3e-9, "0.5000 ± 0.0000"),
        (312.4, 45.6, "312 ± 46"),
        (2.5e7, 1e6, "(2.50 ± 0.10)e7"),
        (0.1234, INF, "0.123"),
        (1.234e-4, INF, "1.23e-4"),
        (0.0, 0.0, "0 ± 0"),
        (NAN, NAN, "–"),
    ],
)
def test_estimate_text_rounds_to_the_interval(mean, half_width, expected):
    assert estimate_text(Estimate(mean, half_width, 5)) == expected


def test_estimate_text_with_given_decimals():
    assert estimate_text(Estimate(-2.507, 0.267, 0), 3) == "-2.507 ± 0.267"


@given(mean=st.floats(-1e9, 1e9), relative=st.floats(1e-3, 1e3))
def test_estimate_text_is_close_to_the_estimate(mean, relative):
    half_width = relative * max(abs(mean), 1e-6)
    text = estimate_text(Estimate(mean, half_width, 5))
    body, _, exponent = text.partition(")e")
    scale = 10.0 ** int(exponent or 0)
    written = [float(part) * scale for part in body.lstrip("(").split(" ± ")]
    # Two digits of the half-width, or four decimals where that is fewer.
    tolerance = max(0.051 * half_width, 0.51e-4 * scale)
    np.testing.assert_allclose(written, [mean, half_width], rtol=0, atol=tolerance)


def test_result_table_in_markdown_and_latex():
    table = ResultTable(
        "A & B",
        "ab",
        ["", "50 %", "a_b"],
        [["x|y", Bold(Estimate(1.3e-5, 2.1e-6, 3)), Estimate(NAN, NAN, 3)], ["z", Bold("q"), "–"]],
        "See “here”.",
    )
    assert markdown(table) == (
        "**A & B**\n\n|  | 50 % | a_b |\n| :-- | --: | --: |\n"
        "| x\\|y | **(1.30 ± 0.21)e-5** | – |\n| z | **q** | – |\n\nSee “here”.\n"
    )
    text = latex(table)
    assert r" & 50 \% & a\_b \\" in text
    assert r"x|y & $\mathbf{(1.30 \pm 0.21) \cdot 10^{-5}}$ & -- \\" in text
    assert r"z & \textbf{q} & -- \\" in text
    assert r"\caption{A \& B. See ``here''.}" in text


def test_looks_of_methods_and_titles_of_environments_are_the_papers():
    assert title_of("hartmann6") == "Random Hartmann6" and title_of("my plant") == "my plant"
    assert in_order(["zoo", "xgboost", "rpart", "branin"]) == ["branin", "rpart", "xgboost", "zoo"]
    looks = looks_of(["FixedGP", "mine", "FPacohMap", "also mine", "FixedGP"])
    labels = [look.label for look in looks.values()]
    assert labels == ["F-PACOH-MAP", "Fixed GP", "also mine", "mine"]
    assert looks_of(["F-PACOH-MAP"])["F-PACOH-MAP"] == looks["FPacohMap"]


def test_looks_of_variants_are_those_of_their_method_dotted():
    looks = looks_of(["NeuralProcess+latent", "FPacohMap+unrefined+restless", "FPacohMap", "x+y"])
    assert [look.label for look in looks.values()] == [
        *("F-PACOH-MAP", "F-PACOH-MAP, not refined, our acquisition", "NP, latent UCB", "x+y")
    ]
    plain, varied = looks["FPacohMap"], looks["FPacohMap+unrefined+restless"]
    assert plain.colour == varied.colour and plain.dashes != varied.dashes


def test_looks_of_methods_all_differ():
    looks = [*METHODS.values(), *looks_of(["a", "b", "c"]).values()]
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)


def test_published_numbers_are_best_where_the_paper_prints_bold():
    def best(published, choose):
        environments = published["fpacohmap"]
        return [
            choose(published, key=lambda method, e=e: published[method][e][0]) for e in environments
        ]

    assert best(LOG_LIKELIHOOD, max) == [
        *("fpacohmap", "learnedgp", "fpacohmap", "fpacohmap", "learnedgp", "learnedgp")
    ]
    assert best(CALIBRATION_ERROR, min) == [
        *("fpacohmap", "fpacohmap", "ablr", "fixedgp", "fpacohmap", "fpacohmap")
    ]


def test_published_numbers_add_up():
    """Sums of the printed columns, added by hand from the paper: a slip of the pen would show."""
    means = {
        name: [sum(row[e][0] for row in table.values()) for e in table["ablr"]]
        for name, table in (("ll", LOG_LIKELIHOOD), ("ce", CALIBRATION_ERROR))
    }
    assert means["ll"] == pytest.approx([-19.431, -2.012, 8.087, 7.412, 2.742, 5.796])
    assert means["ce"] == pytest.approx([0.761, 0.356, 0.392, 0.969, 0.897, 0.744])
