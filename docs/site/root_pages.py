"""Pages of the site whose Markdown lies outside of `docs/`, and links to files that are no pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
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
    "studies/results/README.md": "results.md",
}
"""Each file by its path from the root, and where the site has it."""

_LINK = re.compile(r"\[(?P<text>[^]\n]+)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_OUTPUT = re.compile(r"^<!-- (output|refusal|generated|figure|end).*-->\n", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the site has their files; of a link to a file that it lacks, the text stays."""
    del config
    sources = {page: source for source, page in PAGES.items()}
    uri = page.file.src_uri
    folder = posixpath.dirname(sources.get(uri, f"docs/{uri}"))

    def lead(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found["path"]))
        target = PAGES.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(target) is None:
            assert (ROOT / path).exists(), f"{page.file.src_uri}: there is no {path}"
            return found["text"]
        relative = posixpath.relpath(target, posixpath.dirname(uri) or ".")
        return f"[{found['text']}]({relative}{found['anchor'] or ''})"

    return _LINK.sub(lead, _OUTPUT.sub("", markdown))
