"""The site builds without warnings or network, and its reference has every public name."""

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("grammar", "blocks", "studies", "engine", "reporting", "storage")
FACES = ["activemem", *(f"activemem.{folder}" for folder in FOLDERS)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, built as by `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    options = ("--strict", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "http_proxy": "http://localhost:1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.heavy
def test_every_document_is_a_page_and_needs_nothing_from_elsewhere(site):
    documents = [path.relative_to(ROOT / "docs") for path in ROOT.glob("docs/**/*.md")]
    for document in [*documents, Path("ARCHITECTURE.md"), Path("CHANGELOG.md")]:
        name = "index" if document.stem == "README" else document.stem
        page = (site / document.parent / f"{name}.html").read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img)[^>]* src="(https?:[^"]*)"', page) == []
        assert re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="(https?:[^"]*)"', page) == []


@pytest.mark.heavy
def test_every_link_of_the_first_page_is_one_on_the_site(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    texts = re.findall(r"\[([^]`\n]+)\]\(", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert [text for text in texts if f">{text}</a>" not in page and f'alt="{text}"' not in page] == []
    targets = [target for target in re.findall('href="([^"#:]+)', page) if target.endswith(".txt")]
    assert [target for target in targets if not (site / target).is_file()] == []


@pytest.mark.heavy
def test_search_works_where_pages_are_opened_as_files(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert (site / "search" / "search_index.js").is_file()
    assert '<script src="site/iframe-worker.js">' in page


@pytest.mark.heavy
def test_cells_of_a_table_with_long_texts_name_their_columns(site):
    page = (site / "reference" / "blocks.html").read_text(encoding="utf-8")
    assert re.search(r'<td data-column="equation"[^>]*>y = act\(x\)</td>', page)


@pytest.mark.heavy
@pytest.mark.parametrize("face", FACES)
def test_every_promised_name_has_an_entry_in_the_reference(site, face):
    module = import_module(face)
    named = {name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)}
    entries = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert {name for name in named if f'id="{face}.{name}"' not in entries} == set()
