"""Footnotes are lettered in the order of their appearance."""

from activemem.reporting.tables.table import Footnote, Footnotes


def test_equal_sentences_share_a_letter() -> None:
    notes = Footnotes()
    assert [notes.mark("failed"), notes.mark("pruned"), notes.mark("failed")] == ["a", "b", "a"]
    assert notes.as_tuple() == (Footnote(mark="a", text="failed"), Footnote(mark="b", text="pruned"))


def test_letters_continue_after_z() -> None:
    notes = Footnotes()
    marks = [notes.mark(str(number)) for number in range(26 * 27 + 1)]
    assert [marks[number] for number in (25, 26, 27, 51, 52, 701, 702)] == [
        "z",
        "aa",
        "ab",
        "az",
        "ba",
        "zz",
        "aaa",
    ]
