"""`docs/tutorial`: its excerpts equal the files of its steps, and each file trains."""

import json
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from ..forked_commands import run_command, run_program

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
PAGES = sorted(TUTORIAL.glob("[0-9][0-9]-*.md"))
FIRST = TUTORIAL / "steps" / "00" / "mine.toml"
STEPS = [*sorted({*TUTORIAL.glob("steps/*/mine.toml")} - {FIRST}), TUTORIAL / "steps" / "10" / "beside.toml"]
NUMBERS = [path.parent.name for path in (FIRST, *STEPS)]
TRIALS = dict(zip(NUMBERS, (4, 2, 6, 6, 6, 6, 12, 15, 12, 14, 12), strict=True))
MIRROR = ("--plugin", "mirror.py")

sys.path.insert(0, str(ROOT / "docs"))
from reader_folders import fill_folder, folder_of_step  # noqa: E402


def excerpts(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)


@pytest.fixture(params=[FIRST, *STEPS], ids=lambda path: path.parent.name)
def step(request, tmp_path):
    """Return the study of a step, in a folder with the reader's files."""
    fill_folder(tmp_path, int(request.param.parent.name))
    return tmp_path / request.param.name, request.param.parent.name


def test_there_is_a_page_for_each_step_and_the_index_has_all():
    assert [page.name[:2] for page in PAGES] == [path.parent.name for path in STEPS]
    index = (TUTORIAL / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\d\d-[^)]*)\)", index) == [page.name for page in PAGES] + [PAGES[0].name]


@pytest.mark.parametrize(("page", "after"), list(pairwise(PAGES)), ids=lambda page: page.name)
def test_a_page_says_for_whom_it_is_and_leads_on(page, after):
    title, _, first, *_ = page.read_text(encoding="utf-8").splitlines()
    assert (title.startswith("# "), first.startswith("This page is for you if you ")) == (True, True)
    last = page.read_text(encoding="utf-8").rstrip().split("\n\n")[-1]
    assert re.match(rf"Next: \[.*\]\({after.name}\)\. More: \[", last)


@pytest.mark.parametrize(("page", "path"), list(zip(PAGES, STEPS, strict=True)), ids=lambda path: path.name)
def test_a_page_shows_what_is_new_in_the_file_and_nothing_else(page, path):
    text, shown = path.read_text(encoding="utf-8"), excerpts(page, "toml")
    assert [each for each in shown if each not in text] == []
    before = {"01": "", "10": "04"}.get(page.name[:2], f"{int(page.name[:2]) - 1:02}")
    known = (TUTORIAL / "steps" / before / "mine.toml").read_text(encoding="utf-8") if before else ""
    new = set(text.splitlines()) - set(known.splitlines())
    assert new - set("".join(shown).splitlines()) == set()
    for code in excerpts(page, "python"):
        assert code == (path.parent / "mirror.py").read_text(encoding="utf-8")


def test_the_first_study_of_the_readme_is_planned_and_trained_below():
    shown = excerpts(ROOT / "README.md", "toml")
    assert FIRST.read_text(encoding="utf-8") == "\n".join(shown)
    assert len(list(filter(None, shown[0].splitlines()))) <= 20


def test_the_study_of_each_step_is_planned(step):
    path, number = step
    done = run_command("study", "plan", path.name, "--json", *MIRROR[: 2 * (number == "07")], cwd=path.parent)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["total"] == TRIALS[number]


def test_the_winners_of_the_search_are_what_promote_writes():
    folder = folder_of_step("09")
    done = run_command("study", "promote", "mine.toml", "--seeds", "3", "--out", "winners.toml", cwd=folder)
    assert done.returncode == 0, done.stderr
    kept = TUTORIAL / "steps" / "10" / "winners.toml"
    assert (folder / "winners.toml").read_text(encoding="utf-8") == kept.read_text(encoding="utf-8")


@pytest.mark.heavy
def test_the_study_of_each_step_trains(step):
    path, number = step
    small = {"train.epochs": "1", "train.steps_per_epoch": "2"}
    if "search" in tomllib.loads(path.read_text(encoding="utf-8")):
        small |= {"search.trials": "2"}
    else:
        small |= {"factors.seed": "[0]"}
    options = [word for pair in small.items() for word in ("--set", "=".join(pair))]
    done = run_command(
        "study", "run", path.name, "--local", *options, *MIRROR[: 2 * (number == "07")], cwd=path.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_whole_tutorial_prints_what_it_shows():
    done = run_program(ROOT / "docs" / "walk_tutorial.py", timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
