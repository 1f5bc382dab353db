"""HTML from values: all text that is not markup is escaped by default."""

import html
import unicodedata
from collections.abc import Iterable, Sequence

# Elements without content.
VOID = {"meta"}


class Html(str):
    """Markup, inserted as it is; any other text is escaped."""


def element(tag: str, *children: str, **attributes: str | bool | None) -> Html:
    """One element: `element("p", "1 < 2", class_="note")`.

    - `attributes`: `class_` is `class` and `aria_label` is `aria-label`; `None` or `False` omits
      one, `True` writes it without a value.
    """
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escaped(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(children)}</{tag}>")


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Parts concatenated; those that are not markup are escaped."""
    return Html(between.join(part if isinstance(part, Html) else escaped(part) for part in parts))


def escaped(text: str) -> Html:
    """`text`, safe inside an element or a quoted attribute."""
    return Html(html.escape(legible(text), quote=True))


def legible(text: str) -> str:
    """`text` without control characters and lone surrogates, which are invalid in HTML."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"
        else c
        for c in text
    )


def unbroken(text: str) -> str:
    """`text` on one line: a number stays with its unit."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def name(text: str) -> Html:
    """A user's name, isolated so that right-to-left scripts do not reorder the text around it."""
    return element("bdi", text)


def paragraph(*parts: str) -> Html:
    return element("p", *parts)


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, class_: str | None = None
) -> Html:
    """A table whose first column holds row headers; a wide one scrolls inside the page."""
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = (
        element("tr", element("th", row[0], scope="row"), *(element("td", c) for c in row[1:]))
        for row in rows
    )
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", *body),
            class_=class_,
        ),
        class_="scroll",
    )
