"""Spaces as TOML: what is written is read back, and mistakes are named."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior.data import Categorical, Integer, Real, Space
from metaprior.data.csv import read_space, space_as_toml, write_space

MIXED = Space(
    lr=Real(1e-4, 0.1, log=True),
    depth=Integer(1, 12),
    act=Categorical(["relu", "tanh"]),
)
WRITTEN = """\
[lr]
kind = "real"
low = 0.0001
high = 0.1
log = true

[depth]
kind = "integer"
low = 1
high = 12

[act]
kind = "categorical"
choices = ["relu", "tanh"]
"""


def test_space_as_toml_by_hand(tmp_path):
    assert space_as_toml(MIXED) == WRITTEN
    path = write_space(MIXED, tmp_path / "space.toml")
    assert path.read_text() == WRITTEN
    assert read_space(path) == MIXED


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
pairs = st.lists(floats, min_size=2, max_size=2, unique=True).map(sorted)
whole_pairs = st.lists(st.integers(1, 2**40), min_size=2, max_size=2, unique=True).map(sorted)
choices = st.lists(names | st.integers(2, 9) | st.booleans(), min_size=2, max_size=5, unique=True)


@settings(deadline=None, max_examples=150)
@given(
    st.tuples(names, names, names).filter(lambda n: len(set(n)) == 3), pairs, whole_pairs, choices
)
def test_read_space_returns_any_written_space(
    tmp_path_factory, names, bounds, whole_bounds, choices
):
    dimensions = (Real(*bounds), Integer(*whole_bounds, log=True), Categorical(choices))
    space = Space(**dict(zip(names, dimensions, strict=True)))
    # The standard library's reader is the judge of whether it is TOML at all.
    assert list(tomllib.loads(space_as_toml(space))) == list(names)
    path = tmp_path_factory.getbasetemp() / "space.toml"
    write_space(space, path)
    assert read_space(path) == space


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no dimension; add one, such as [lr]."),
        ("[lr\n", "is not valid TOML"),
        ("low = 1\n", "low = 1 stands outside of a dimension; put it under the [name] of one."),
        (
            '[lr]\nkind = "float"\n',
            "[lr]: the kind must be one of 'real', 'integer', 'categorical'",
        ),
        ("[lr]\nlow = 1\n", "[lr]: the kind must be one of 'real', 'integer', 'categorical', rec"),
        ('[lr]\nkind = "real"\nlow = 1\n', "[lr]: a dimension of kind 'real' needs 'high'; add it"),
        (
            '[a]\nkind = "categorical"\nchoices = ["b", "c"]\nlow = 1\n',
            "[a]: a dimension of kind 'categorical' has no 'low', only 'choices', 'when', "
            "'one_hot'; remove",
        ),
        (
            '["a b"]\nkind = "real"\nlow = 2\nhigh = 1\n',
            '["a b"]: The bounds of Real(2, 1) leave nothing to choose; give low < high',
        ),
        (
            '[a]\nkind = "integer"\nlow = 0\nhigh = 2\nlog = true\n',
            "[a]: `low` of Integer(0, 2, log=True) must be at least 1 on a log scale; raise it.",
        ),
        ('[a]\nkind = "categorical"\nchoices = "b"\n', "[a]: Categorical needs a list of choices"),
        ('[net.width]\nkind = "integer"\n', 'write a name with a dot in quotes: ["net.width"].'),
    ],
)
def test_read_space_names_mistakes(tmp_path, text, problem):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        read_space(path)
    message = str(raised.value)
    assert str(path) in message and problem in message, message


def test_read_space_names_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="none.toml cannot be read: no such file or directory; "):
        read_space(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    with pytest.raises(ValueError, match="latin.toml is not valid TOML"):
        read_space(tmp_path / "latin.toml")
