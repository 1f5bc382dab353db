"""What a value is called, and its unit."""

import pytest

from metaprior.data import Quantity


@pytest.mark.parametrize(
    ("column", "unit", "label"),
    [
        ("yield_pct", "%", "yield_pct in %"),
        ("yield [%]", "%", "yield [%]"),
        ("Force (kN)", "kN", "Force (kN)"),
        ("loss", "", "loss"),
        ("f(x)", "", "f(x)"),
    ],
)
def test_quantity_reads_the_unit_that_a_column_says(column, unit, label):
    quantity = Quantity.of_column(column)
    assert (quantity.name, quantity.unit, quantity.label) == (column, unit, label)
    assert Quantity.from_json(quantity.to_json()) == quantity


def test_quantity_takes_the_unit_that_is_given():
    quantity = Quantity.of_column("time", " ms ")
    assert (quantity.label, quantity.with_unit("12.5")) == ("time in ms", "12.5 ms")
    assert Quantity.from_json(None) == Quantity("value") and Quantity().with_unit("3") == "3"


def test_quantity_refuses_what_is_no_name_and_no_text():
    with pytest.raises(ValueError, match="The value has no name; give one"):
        Quantity("  ")
    with pytest.raises(ValueError, match="where a name and a unit should be"):
        Quantity.from_json({"name": 3, "unit": ""})
