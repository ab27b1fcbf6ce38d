"""A paper of the study with all possible outcomes of cells."""

import pytest

from activemem.reporting.manuscript import read_manuscript

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
none = "max_length[task=sort, mixer=persistent_conv(k=20) + sa]"
"""


@pytest.fixture
def read(everything, kept, tmp_path):
    """Return a function that reads a paper.toml beside the study."""
    (tmp_path / "everything.toml").write_text(everything.document.text + CURVE, encoding="utf-8")

    def from_text(text=PAPER):
        (tmp_path / "paper.toml").write_text(text, encoding="utf-8")
        return read_manuscript(tmp_path / "paper.toml", lambda place: kept)

    return from_text


@pytest.fixture
def built(read):
    """Return the paper, with its files written."""
    from activemem.reporting.manuscript import paper_files

    paper = read()
    for name, content in paper_files(paper).items():
        path = paper.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return paper
