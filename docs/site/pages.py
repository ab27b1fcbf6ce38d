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

_LINK = re.compile(r"\[(?P<text>[^]\n]+)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_PART = re.compile(r"^```toml part$", re.MULTILINE)
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
    """Insert the API reference, and replace links to files outside the site by their text."""
    del config
    uri = page.file.src_uri
    source = next((source for source, page in PAGES.items() if page == uri), f"docs/{uri}")

    def follow(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["path"]))
        target = PAGES.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target) is None:
            assert (ROOT / path).exists(), f"{source} has a link to {path}, which does not exist"
            return found["text"]
        relative = posixpath.relpath(target, posixpath.dirname(uri) or ".")
        return f"[{found['text']}]({relative}{found['anchor'] or ''})"

    markdown = _PART.sub("```toml", markdown)  # a part of a study file is highlighted as a whole one is
    return _LINK.sub(follow, _PROMISED.sub(lambda found: _entries(found["package"]), markdown))


def _entries(package: str) -> str:
    """Yield an entry for each public name of a package except public submodules."""
    module = import_module(package)
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]
    return "\n\n".join(f"::: {package}.{name}" for name in sorted(names, key=str.lower))
