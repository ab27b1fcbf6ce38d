"""HTML in small pieces: what is `Html` is markup already, any other text becomes it through `plain`.

The type keeps the two apart: a text from a study file or a store cannot reach a page without being escaped,
for no function here takes it where it wants `Html`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NewType

Html = NewType("Html", str)


@dataclass(frozen=True, slots=True)
class HtmlColumn:
    """A column of a grid: numbers stand to the right, words may wrap."""

    head: str
    kind: Literal["number", "words", "short"] = "short"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A part of the page with its own heading and place in the contents.

    `name` is its anchor, which is part of the address that people pass on: it stays.
    """

    name: str
    title: str
    body: Html


def escape_html(text: str) -> Html:
    """Text as markup that shows it."""
    return Html(escape(text))


def code(text: str) -> Html:
    """What somebody could type."""
    return Html(f"<code>{escape(text)}</code>")


def join_html(pieces: Iterable[Html], between: str = "\n") -> Html:
    """Pieces one after another."""
    return Html(between.join(pieces))


def paragraph(text: Html, kind: str = "") -> Html:
    """A paragraph, of a kind that the style knows."""
    return Html(f'<p class="{kind}">{text}</p>' if kind else f"<p>{text}</p>")


def bullet_list(items: Iterable[Html]) -> Html:
    """A list without an order."""
    return Html("<ul>\n" + "\n".join(f"<li>{item}</li>" for item in items) + "\n</ul>")


def collapsible(summary: Html, body: Html) -> Html:
    """What opens on demand, and is open on paper."""
    return Html(f"<details><summary>{summary}</summary>\n{body}\n</details>")


def code_block(text: str) -> Html:
    """Lines as they are, in a box that scrolls by itself."""
    return Html(f'<pre tabindex="0"><code>{escape(text)}</code></pre>')


def scroll_box(label: str, body: Html) -> Html:
    """A box that scrolls by itself where what is in it is wider than the page, by the keyboard, too."""
    return Html(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">\n{body}\n</div>'
    )


def html_table(label: str, columns: Sequence[HtmlColumn], rows: Iterable[Sequence[Html]]) -> Html:
    """A table whose first column names its rows; `label` says what it is to those who do not see it."""
    sides = [f' class="{column.kind}"' for column in columns]
    heads = (
        f'<th scope="col"{side}>{escape(column.head)}</th>'
        for column, side in zip(columns, sides, strict=True)
    )
    lines = ["<table>", f"<thead><tr>{''.join(heads)}</tr></thead>", "<tbody>"]
    for first, *others in rows:
        cells = (f"<td{side}>{cell}</td>" for cell, side in zip(others, sides[1:], strict=True))
        lines.append(f'<tr><th scope="row"{sides[0]}>{first}</th>{"".join(cells)}</tr>')
    return scroll_box(label, Html("\n".join([*lines, "</tbody>", "</table>"])))


def svg_image(svg: bytes, alt: str) -> Html:
    """A drawing, and the words for those who do not see it.

    It goes into the page as a picture and not as elements, so that its style and names stay its own.
    """
    data = b64encode(svg).decode("ascii")
    image = Html(f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">')
    return scroll_box(alt, image)
