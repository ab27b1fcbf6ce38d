"""A paper of the study with all possible outcomes of cells."""

from functools import partial

import pytest

from activemem.reporting.manuscript.files import write_paper
from activemem.reporting.manuscript.paper_file import read_manuscript

CURVE = """
[[curve]]
name = "by_task"
kind = "bar"
x = "task"
value = "loss"
select = { mixer = "sa" }
"""
PAPER = """\
[paper]
studies = ["everything.toml"]

[numbers.everything]
sort = "max_length[task=sort, mixer=conv(k=20)]"
gain = "max_length[task=sort, mixer=sa] - max_length[task=sort, mixer=conv(k=20)]"
times = "max_length[task=sort, mixer=conv(k=20)] / max_length[task=sort, mixer=sa]"
part = "max_length[task=reverse, mixer=sa]"
size = "parameters[task=sort, mixer=sa]"
none = "max_length[task=sort, mixer=persistent_conv(k=20) + sa]"
"""


def write_study(folder, everything):
    """Write the study of the paper into a folder."""
    (folder / "everything.toml").write_text(everything.document.text + CURVE, encoding="utf-8")


def read_in(folder, kept, text=PAPER):
    """Write a paper.toml into a folder, and read it."""
    (folder / "paper.toml").write_text(text, encoding="utf-8")
    return read_manuscript(folder / "paper.toml", lambda place: kept)


@pytest.fixture
def read(everything, kept, tmp_path):
    """Return a function that reads a paper.toml beside the study."""
    write_study(tmp_path, everything)
    return partial(read_in, tmp_path, kept)


@pytest.fixture
def built(read):
    """Return the paper, with its files written."""
    paper = read()
    write_paper(paper)
    return paper
