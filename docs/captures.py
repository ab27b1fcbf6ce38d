"""Terminal captures of outputs that the tutorial shows, rendered by Rich into docs/figures."""

from __future__ import annotations

import io
import posixpath
import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
CAPTURE_MARK = re.compile(r"(<!-- capture: (?P<command>activemem [^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)
_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}|Fira Code, ", re.DOTALL)


def refresh_captures(path: Path, text: str, stale: list[Path], *, check: bool) -> str:
    """Return a page's text with a capture after every mark, of the output that the page has of its command.

    Outdated image files are added to `stale`.
    """

    def shown(found: re.Match[str]) -> str:
        command = found["command"]
        output = text.split(f"\n```\n$ {command}\n")[1].split("```\n", maxsplit=1)[0]
        kept = DOCS / "figures" / f"capture-{path.name.split('-')[0]}.svg"
        fresh = render_capture(command, output)
        if not kept.is_file() or kept.read_text(encoding="utf-8") != fresh:
            stale.append(kept.relative_to(DOCS.parent))
            if not check:
                kept.write_text(fresh, encoding="utf-8")
        return f"{found[1]}\n![The output of {command}]({posixpath.relpath(kept, path.parent)})\n\n{found[3]}"

    return CAPTURE_MARK.sub(shown, text)


def render_capture(command: str, output: str) -> str:
    """Return an output in a terminal's window, as SVG. What plain text has between asterisks is bold."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    bold = re.sub(r"\*([^*\n]+)\*", "\x1b[1m \\1 \x1b[0m", output.rstrip())
    console.print(Text.from_ansi(f"\x1b[2m$\x1b[0m \x1b[1m{command}\x1b[0m\n{bold}"))
    return _WEB_FONT.sub("", console.export_svg(title=""))
