"""A table as a self-contained HTML figure in ASCII, for light and dark pages."""

from __future__ import annotations

from html import escape

from ....errors import replace_unprintable
from ..table import Cell, PublishedLine, Table

STYLE = """\
<style>
.activemem-table { margin: 1em 0; max-width: 100%; overflow-x: auto; font-variant-numeric: tabular-nums; }
.activemem-table table { border-collapse: collapse; border-block: 2px solid; }
.activemem-table caption { caption-side: top; text-align: left; padding-bottom: .5em; }
.activemem-table thead { border-bottom: 1px solid; }
.activemem-table th, .activemem-table td { padding: .2em .7em; text-align: right; vertical-align: top; }
.activemem-table th { font-weight: normal; white-space: nowrap; }
.activemem-table th:first-child { text-align: left; padding-left: 0; }
.activemem-table td { white-space: nowrap; }
.activemem-table sup { line-height: 0; }
.activemem-table td sup { position: absolute; padding-top: .5em; }
.activemem-table small { opacity: .75; }
.activemem-table figcaption { font-size: .85em; padding-top: .5em; }
.activemem-table p { margin: 0; }
.activemem-table th.over { text-align: center; border-bottom: 1px solid; }
.activemem-table th.inner:first-child { padding-left: 1em; }
</style>"""


def render(table: Table) -> str:
    """Return a `<figure>` with the caption, the table, and all sentences below it. Its notes unfold."""
    lines = [
        f'<figure class="activemem-table" id="{escape(table.name)}">',
        STYLE,
        "<table>",
        f"<caption>{escape(table.caption)}</caption>",
        _head(table),
    ]
    for heading, numbers in table.row_groups():
        lines.append("<tbody>")
        if heading:
            over = f'colspan="{1 + len(table.columns)}"'
            lines.append(f'<tr><th scope="rowgroup" {over}><i>{escape(heading)}</i></th></tr>')
        for row in numbers:
            indent = ' class="inner"' if heading else ""
            lines.append(f'<tr><th scope="row"{indent}>{escape(table.rows[row])}</th>')
            lines.extend(map(_cell, table.cells[row]))
            lines.append("</tr>")
        lines.append("</tbody>")
    lines += ["</table>", "<figcaption>"]
    lines += [f'<p class="note"><sup>{note.mark}</sup> {escape(note.text)}</p>' for note in table.footnotes]
    lines += [f"<p>{escape(' '.join(table.remarks))}</p>"] if table.remarks else []
    if table.notes:
        notes = escape(" ".join(table.notes))
        lines += [f"<details><summary>Notes</summary><p>{notes}</p></details>"]
    lines += [f'<p class="provenance">{escape(table.provenance)}</p>', "</figcaption>", "</figure>", ""]
    # in ASCII, the figure can be part of a page in any encoding
    return replace_unprintable("\n".join(lines)).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _head(table: Table) -> str:
    lines = []
    for spans in table.heading_spans():
        cells = (
            f'<th scope="colgroup" colspan="{over}" class="over">{escape(name)}</th>' if name else "<td></td>"
            for name, over in spans
        )
        lines.append(f"<tr><td></td>{''.join(cells)}</tr>")
    heads = (f'<th scope="col">{escape(name)}</th>' for name in (table.corner, *table.columns))
    return f"<thead>{''.join(lines)}<tr>{''.join(heads)}</tr></thead>"


def _cell(cell: Cell) -> str:
    ours = f"<strong>{escape(cell.full_text)}</strong>" if cell.best else escape(cell.full_text)
    if cell.marks:
        ours += f"<sup>{','.join(cell.marks)}</sup>"
    parts = [ours, *map(_published, cell.lines_below)]
    classes = f"{cell.status} best" if cell.best else f"{cell.status}"
    return f'<td class="{classes}">{"<br>".join(filter(None, parts))}</td>'


def _published(line: PublishedLine) -> str:
    title = f' title="{escape(line.number.remark)}"' if line.number.remark else ""
    marks = f"<sup>{','.join(line.marks)}</sup>" if line.marks else ""
    return f'<small class="published"{title}>{escape(line.text)}{marks}</small>'
