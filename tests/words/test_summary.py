"""Summary: short text for a terminal, and a table without markup of its own for a notebook."""

from html.parser import HTMLParser

from metaprior.words import Summary


def test_summary_as_text_has_one_short_line_per_fact():
    lines = Summary("Thing", [("a", "1"), ("b", "x\n" * 500)]).as_text().splitlines()
    assert lines[:2] == ["Thing", "  a: 1"]
    assert len(lines) == 3
    assert all(len(line) <= 100 for line in lines)


def test_summary_as_html_escapes_what_it_shows():
    fact = "<script>alert('&')</script>"
    html = Summary("<b>", [("<i>", fact)]).as_html()
    tags, texts = [], []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)

        def handle_data(self, data):
            texts.append(data)

    Reader().feed(html)
    assert tags == ["table", "caption", "tr", "th", "td"]
    assert texts == ["<b>", "<i>", fact]
