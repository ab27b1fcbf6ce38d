"""Additions of the site to `docs/`: pages from other folders, the API reference, and checked links."""

from __future__ import annotations

import atexit
import posixpath
import re
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
    "studies/results/README.md": "committed-results.md",
}
"""The paths of pages outside `docs/`, with their paths on the site."""

FOLDERS = {"docs/how-to": "how-to/factors.md"}
"""The folders to which pages link, with the page that stands for each on the site."""

LONG_CELL = 60
"""The number of characters from which a cell makes its table one of words, shown as cards on a telephone."""

_LINK = re.compile(r"\[(?P<text>[^]]+)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_PART = re.compile(r"^```(\w+) [\w.]+$", re.MULTILINE)
_FIGURE = re.compile(r'<img [^>]*src="(?P<file>[^"]+\.svg)"[^>]*>')
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW, _HEAD, _CELL = (re.compile(rf"<{tag}[^>]*>(.*?)</{tag}>", re.DOTALL) for tag in ("tr", "th", "td"))
_TAG = re.compile("<[^>]*>")
_PROMISED = re.compile(r"^<!-- promised: (?P<package>[\w.]+) -->$", re.MULTILINE)


def on_startup(*, command: str, dirty: bool) -> None:
    """Prepare a folder with only the package, from which the API reference is generated."""
    sources = TemporaryDirectory(prefix="activemem-")
    atexit.register(sources.cleanup)
    package = Path(sources.name, "activemem")
    package.mkdir()
    for source in (*ROOT.glob("*.py*"), *(path.parent for path in ROOT.glob("*/__init__.py"))):
        if source.name not in ("build", "tests", "docs", "bench"):
            (package / source.name).symlink_to(source)
    sys.path.insert(0, sources.name)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs/`."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the API reference, and add files to the site to which there are links, as texts."""
    uri = page.file.src_uri
    source = next((source for source, page in PAGES.items() if page == uri), f"docs/{uri}")

    def follow(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
        target = (PAGES | FOLDERS).get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target) is None:
            assert (ROOT / path).is_file(), f"{source} has a link to {path}, which is no file"
            target = f"{path}.txt"
            files.append(File.generated(config, target, content=(ROOT / path).read_text(encoding="utf-8")))
        relative = posixpath.relpath(target, posixpath.dirname(uri) or ".")
        return f"[{found['text']}]({relative}{found['anchor'] or ''})"

    markdown = _PART.sub(r"```\1", markdown)  # a part of a study file is highlighted as a whole one is
    return _LINK.sub(follow, _PROMISED.sub(lambda found: _entries(found["package"]), markdown))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link figures to their files, and name the columns in the cells of tables with long texts."""
    del page, config, files
    html = _FIGURE.sub(lambda found: f'<a href="{found["file"]}">{found[0]}</a>', html)
    return _TABLE.sub(lambda found: _as_cards(found[0]), html)


def _as_cards(table: str) -> str:
    """Return a table marked for `wide.css` as cards, unless all of its cells are short."""
    if max((len(_TAG.sub("", cell)) for cell in _CELL.findall(table)), default=0) < LONG_CELL:
        return table
    names = [_TAG.sub("", name) for name in _HEAD.findall(table)]

    def named(row: re.Match[str]) -> str:
        columns = iter(names)
        return re.sub("<td", lambda _: f'<td data-column="{next(columns)}"', row[0])

    return _ROW.sub(named, table).replace("<table>", "<table data-cards>", 1)


def _entries(package: str) -> str:
    """Yield an entry for each public name of a package except public submodules."""
    module = import_module(package)
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]
    return "\n\n".join(f"::: {package}.{name}" for name in sorted(names, key=str.lower))
