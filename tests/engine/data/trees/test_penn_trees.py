"""Bracketed trees: parsing, stripping, linearisation and reconstruction."""

import hashlib
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from activemem.engine import DataError
from activemem.engine.data.treebanks import (
    Leaf,
    Tree,
    gold_trees,
    linearise,
    open_treebank,
    parse_linearised,
    parse_trees,
    strip_annotations,
)
from activemem.studies import CorpusError, dataset_names, require_dataset
from activemem.studies.catalog.datasets import Treebank

WRITTEN = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (NP-PRD=2 (NN chairman) (-LRB- -LRB-) )
      (S (NP-SBJ (-NONE- *-1) ) (VP (-NONE- *?*))))
    (. .) ))
( (FRAG (UH No)))
"""


def one(text):
    (tree,) = parse_trees(text)
    return tree


def test_trees_are_read_one_after_the_other_and_the_outermost_bracket_is_called_top():
    first, second = parse_trees(WRITTEN)
    assert str(second) == "(TOP (FRAG (UH No)))"
    assert first.label == "TOP"
    assert [leaf.word for leaf in first.leaves()] == [
        "Mr.",
        "Vinken",
        "is",
        "chairman",
        "-LRB-",
        "*-1",
        "*?*",
        ".",
    ]
    assert one(str(first)) == first


def test_traces_and_functions_are_stripped_and_tags_stay():
    first, _ = parse_trees(WRITTEN)
    assert str(strip_annotations(first)) == (
        "(TOP (S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ is) (NP (NN chairman) (-LRB- -LRB-))) (. .)))"
    )
    assert strip_annotations(one("(S (NP (-NONE- *)))")) is None


@pytest.mark.parametrize(
    "text",
    [
        "(S (NN x)",
        "(S (NN x)))",
        "(S (NN x y))",
        "(S ((NN x)))",
        "(S ())",
        "()",
        "x",
        "(NN x)",
    ],
)
def test_text_that_is_no_tree_is_rejected_with_its_position(text, golden):
    with golden.raises(DataError):
        list(parse_trees(text))


def test_a_line_has_brackets_with_their_labels_and_tags_for_words():
    tree = one("( (S (NP (DT the) (NN cat)) (VP (VBD sat))))")
    assert linearise(tree) == ["(S", "(NP", "DT", "NN", ")NP", "(VP", "VBD", ")VP", ")S"]
    assert parse_linearised(linearise(tree), ["the", "cat", "sat"]) == tree


def test_a_root_of_several_trees_comes_back():
    tree = one("( (NP (NN x)) (. .))")
    assert (
        parse_linearised(linearise(tree), ["x", "."])
        == tree
        == Tree("TOP", (Tree("NP", (Leaf("NN", "x"),)), Leaf(".", ".")))
    )


@pytest.mark.parametrize(
    "line",
    [
        "(S NN",  # open
        "(S NN )S )S",  # closed twice
        "(S (NP NN )S )NP",  # crossed
        "(S NN )NP",  # another label
        "(S NN (NP )NP )S",  # empty
        "(S NN NN )S",  # a tag too many
        "(S )S",  # none
        "",
    ],
)
def test_only_well_bracketed_lines_with_as_many_tags_as_words_are_trees(line):
    assert parse_linearised(line.split(), ["x"]) is None
    assert parse_linearised(["(S", "NN", ")S"], ["x"]) is not None


@dataclass
class Task:
    """The parts of a task's table that matter here."""

    corpus: str = "wsj"
    tokens: str = "words"
    pieces: int = 50


def wsj(folder):
    """Write three files of a treebank, in the layout of the published folders."""
    for number, word in ((201, "train"), (2200, "dev"), (2399, "test"), (2400, "none")):
        path = folder / "wsj" / f"{number // 100:02}" / f"wsj_{number:04}.mrg"
        path.parent.mkdir(parents=True)
        path.write_text(f"( (S (NP-SBJ (NN {word}) (-NONE- *)) (VP (VBZ is))) )\n( (NP (NN {word})))\n")


def test_a_treebank_is_split_by_the_sections_of_its_files(tmp_path):
    wsj(tmp_path)
    text = open_treebank(Task(), tmp_path)
    assert (text.source.size, text.target.size) == (50, 128)
    assert [len(split.source.lines) - 1 for split in (text.train, text.dev, text.test)] == [2, 2, 2]
    assert text.dev.sentences("source") == ["dev is", "dev"]
    assert text.test.sentences("target") == ["(S (NP NN )NP (VP VBZ )VP )S", "(NP NN )NP"]
    assert text.target.decode(text.test.target.tokens.tolist()) == text.test.sentences("target")[0]
    assert [str(tree) for tree in gold_trees(text.dev)] == [
        "(TOP (S (NP (NN dev)) (VP (VBZ is))))",
        "(TOP (NP (NN dev)))",
    ]


def test_other_files_are_another_treebank(tmp_path):
    wsj(tmp_path)
    open_treebank(Task(), tmp_path)
    (tmp_path / "wsj" / "23" / "wsj_2300.mrg").write_text("( (NP (NN more)))")
    assert open_treebank(Task(), tmp_path).test.sentences("source") == ["more", "test is", "test"]


def test_a_treebank_that_is_not_here_or_another_is_refused(tmp_path, golden):
    with golden.raises(DataError):
        open_treebank(Task(), tmp_path)
    place = tmp_path / "ptb-sample"
    place.mkdir()
    content = b"( (NP (NN x)))"
    (place / "wsj_0001.mrg").write_bytes(content)
    with pytest.raises(DataError) as fault:
        open_treebank(Task(corpus="wsj-sample"), tmp_path)
    digest = require_dataset("wsj-sample", Treebank).digest
    got = f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert str(fault.value) == f"wsj-sample: {place}: expected {digest}, got {got}"


def test_treebanks_are_asked_for_by_name():
    with pytest.raises(CorpusError) as fault:
        require_dataset("wjs", Treebank)
    assert str(fault.value) == "unknown treebank 'wjs'; nearest: wsj"
    with pytest.raises(CorpusError) as fault:
        require_dataset("nosuch", Treebank)
    assert str(fault.value) == "unknown treebank 'nosuch'; known: wsj, wsj-sample"
    assert dataset_names(Treebank) == ("wsj", "wsj-sample")


def test_the_real_sample_comes_back_whole(tmp_path):
    real = os.environ.get("ACTIVEMEM_TEST_DATA")
    if real is None:
        pytest.skip("ACTIVEMEM_TEST_DATA names no folder with a treebank")
    (tmp_path / "ptb-sample").symlink_to(Path(real, "ptb-sample"))
    text = open_treebank(Task(corpus="wsj-sample", tokens="spelled", pieces=8000), tmp_path)
    assert [len(split.source.lines) - 1 for split in (text.train, text.dev, text.test)] == [3396, 173, 345]
    content = lzma.decompress(Path(real, "ptb-sample", "wsj_0001-0199.mrg.xz").read_bytes()).decode()
    stripped = [strip_annotations(tree) for tree in parse_trees(content)]
    assert gold_trees(text.dev) + gold_trees(text.test) == stripped[3396:]
    assert sum(1 for tree in stripped for _ in tree.leaves()) == 94_084
    for tree in stripped:
        assert parse_linearised(linearise(tree), [leaf.word for leaf in tree.leaves()]) == tree


def test_a_treebank_is_written_once(tmp_path):
    wsj(tmp_path)
    open_treebank(Task(), tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    open_treebank(Task(), tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == written
    assert not list(tmp_path.rglob("*.unfinished"))
