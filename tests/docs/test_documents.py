"""Outputs in the documents equal those of the program."""

import re
from pathlib import Path

import pytest

from ..forked_commands import run_program

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
RESULTS = [*(page for page in PAGES if page.startswith("docs/results/")), "studies/results/README.md"]
OTHERS = [page for page in PAGES if page not in RESULTS]


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param(RESULTS, id="results", marks=pytest.mark.heavy),
        pytest.param(OTHERS, id="all others"),
    ],
)
def test_every_output_in_a_document_is_what_the_program_prints(documents):
    done = run_program(ROOT / "docs" / "refresh.py", "--check", *documents, cwd=ROOT)
    told = done.stdout + done.stderr
    assert (done.returncode, done.stdout) == (0, ""), f"{told}refresh with: python docs/refresh.py"


def test_the_map_names_every_folder_and_stays_short():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert {folder for folder in folders if f"`{folder}/`" in text} == folders
    assert len(text.splitlines()) <= 100


def test_the_map_and_the_guide_name_only_what_is_there():
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        named = re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", (ROOT / name).read_text(encoding="utf-8"))
        assert [path for path in named if not (ROOT / path).exists()] == [], name


def test_no_row_of_a_table_in_the_documents_is_broken():
    for document in sorted((ROOT / "docs").rglob("*.md")):
        lines = re.sub(
            r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S
        ).splitlines()
        broken = [line for line in lines if line.startswith("| ") and not line.endswith(" |")]
        assert broken == [], document.name


def test_a_page_stays_short_and_says_for_whom_it_is():
    for folder in ("how-to", "why", "results"):
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            title, empty, first, *rest = page.read_text(encoding="utf-8").splitlines()
            assert title.startswith("# ") and not empty and first.startswith("This page is for "), page.name
            # pages of results are mostly outputs
            assert len(rest) <= (290 if folder == "results" else 265), page.name
