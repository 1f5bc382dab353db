"""The tool that wraps Markdown touches prose only."""

import pytest

from tools.wrap_docs import COLUMNS, wrapped

KEPT = [
    "| " + "cell | " * 40,
    "```python\n" + "x = 1  # " + "long " * 40 + "\n```",
    r"\[ " + "x + " * 40 + "\n   " + "y + " * 40 + r" \]",
    "    $$ " + "x + " * 40 + "$$",
    "# " + "heading " * 20,
    "::: metaprior.learn\n    options:\n      members: [a, b]",
]


@pytest.mark.parametrize("text", KEPT)
def test_wrapped_keeps_what_is_not_prose(text):
    assert wrapped(text + "\n") == text + "\n"


def test_wrapped_breaks_prose_and_changes_no_word():
    text = "A word and `inline code` and \\(x + y\\) and [a link](b c.md) - " * 9
    lines = wrapped(text + "\n").splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= COLUMNS
    assert " ".join(lines).split() == text.split()
    for whole in ("`inline code`", "\\(x + y\\)", "](b c.md)"):
        assert sum(line.count(whole) for line in lines) == 9
    assert not any(line.startswith("- ") for line in lines)


def test_wrapped_indents_the_lines_of_a_list_item():
    item = "1. " + "word " * 40
    first, *rest = wrapped(f"{item}\n- next\n").splitlines()
    assert first.startswith("1. word") and rest[-1] == "- next"
    assert all(line.startswith("   word") for line in rest[:-1])


def test_wrapped_is_idempotent():
    text = "\n\n".join([*KEPT, "- " + "word " * 50, "word " * 50]) + "\n"
    assert wrapped(wrapped(text)) == wrapped(text)
