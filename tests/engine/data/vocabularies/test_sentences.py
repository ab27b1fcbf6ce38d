"""Vocabularies of sentences: lossless encoding, except where documented."""

import gzip
import lzma
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activemem.engine import DataError
from activemem.engine.data.vocabularies.build import learn_vocabulary, load_vocabulary
from activemem.engine.data.vocabularies.sentences import SPACE
from activemem.engine.data.vocabularies.vocabulary import END, PADDING, START, UNKNOWN

SENTENCES = [
    "The cat sat on the mat, and the dog (the big one) didn't.",
    "The dog sat: “Where is the cat?”",
    "Où est le chat ? L'été, c'est-à-dire demain.",
]
FIRST_WORD = SPACE + 1 + 256 + len(set("".join(SENTENCES)) - {" "})
SPELLED = learn_vocabulary("spelled", SENTENCES, FIRST_WORD + 5)
DIGITS = learn_vocabulary("spelled_digits", SENTENCES, FIRST_WORD + 5)


def written(vocabulary, sentence):
    """Return each symbol as text, with `_` for an encoded space."""
    return [
        "_" if number == SPACE else vocabulary.decode_symbols([number])
        for number in vocabulary.encode(sentence)
    ]


def test_words_are_in_the_order_of_how_frequent_they_are_then_of_spelling():
    words = [SPELLED.decode_symbols([number]) for number in range(FIRST_WORD, SPELLED.size)]
    assert words == ["the", "The", "cat", "dog", "sat"]


def test_a_space_is_implied_between_two_words_and_nowhere_else():
    assert written(SPELLED, "the cat sat") == ["the", "cat", "sat"]
    assert written(SPELLED, "the  cat") == ["the", "_", "_", "cat"]
    assert written(SPELLED, "the, cat.") == ["the", ",", "_", "cat", "."]
    assert written(SPELLED, " the cat ") == ["_", "the", "cat", "_"]


def test_a_word_that_is_not_in_the_vocabulary_is_spelled_between_spaces():
    assert written(SPELLED, "the mat sat") == ["the", "_", "m", "a", "t", "_", "sat"]
    assert written(SPELLED, "mat nine") == ["m", "a", "t", "_", "n", "i", "n", "e"]
    assert written(SPELLED, "mat!") == ["m", "a", "t", *written(SPELLED, "!")]


def test_words_and_spaces_of_a_model_are_read_as_they_are_meant():
    the, cat = SPELLED.encode("the cat")
    (comma,) = SPELLED.encode(",")
    assert SPELLED.decode_symbols([the, the, comma, cat, SPACE, cat]) == "the the,cat cat"
    assert SPELLED.decode([START, the, cat, END, cat]) == "the cat"
    assert SPELLED.decode([PADDING, the, UNKNOWN, cat]) == "the�cat"


@given(st.text())
def test_no_text_loses_anything(text):
    assert SPELLED.decode(SPELLED.encode(text)) == text
    assert DIGITS.decode(DIGITS.encode(text)) == text


def test_digits_and_signs_are_symbols_of_their_own_where_they_are_asked_for():
    assert written(DIGITS, "the cat_") == ["the", "cat", "_"]
    assert written(DIGITS, "the-cat") == ["the", "-", "cat"]
    assert written(DIGITS, "cat 12 cat") == ["cat", "_", "1", "2", "_", "cat"]
    assert written(SPELLED, "the-cat") == [*"the-cat"]
    words = [DIGITS.decode_symbols([number]) for number in range(FIRST_WORD, DIGITS.size)]
    assert words == ["the", "The", "cat", "dog", "est"]  # in c'est-à-dire, too


@pytest.mark.parametrize("kind", ["spelled", "spelled_digits", "words", "bpe"])
def test_a_vocabulary_is_restored_as_it_was(kind):
    vocabulary = learn_vocabulary(kind, SENTENCES, 330)
    again = load_vocabulary(kind, vocabulary.content())
    assert again.size == vocabulary.size == 330
    for sentence in SENTENCES:
        numbers = vocabulary.encode(sentence)
        assert again.encode(sentence) == numbers
        assert set(numbers).isdisjoint((PADDING, START, END, UNKNOWN))
        assert max(numbers) < 330
        assert again.decode(numbers) == vocabulary.normalise(sentence)


def test_pieces_lose_nothing_not_even_spaces_and_unseen_signs():
    pieces = learn_vocabulary("bpe", SENTENCES, 330)
    for text in ("  two  spaces ", "日本 😀", "The\u00a0cat\u2028sat"):
        assert pieces.decode(pieces.encode(text)) == text


def test_words_are_in_lower_case_with_marks_apart_and_rare_ones_are_unknown():
    words = learn_vocabulary("words", SENTENCES, 12)
    assert words.normalise("The cat's  mat.") == "the cat ' s mat ."
    assert words.decode(words.encode("The cat, zebra")) == "the cat , <unk>"
    assert words.encode("zebra") == [UNKNOWN]


def test_accents_after_their_letter_and_vowel_signs_are_parts_of_words():
    words = learn_vocabulary("words", SENTENCES, 12)
    assert words.normalise("हिन्दी, किताब।") == "हिन्दी , किताब ।"
    assert words.normalise("E\u0301te\u0301-là") == "e\u0301te\u0301 - là"
    assert words.normalise("I \u2764\ufe0flove it") == "i \u2764 \ufe0f love it"
    assert words.normalise("می\u200cروم؟") == "می\u200cروم ؟"


def test_symbols_are_a_closed_set():
    symbols = learn_vocabulary("symbols", ["(NP NN )NP", "(NP DT NN )NP"], 10)
    assert (
        symbols.encode("(NP NN )NP XX") == [4, 6, 5, UNKNOWN]
        or symbols.decode_symbols([4, 5, 6, 7]) == "(NP )NP NN DT"
    )
    assert symbols.decode(symbols.encode("(NP DT )NP")) == "(NP DT )NP"


def test_a_vocabulary_without_room_is_refused(golden):
    with golden.raises(DataError):
        learn_vocabulary("spelled", ["abc"], 263)
    with golden.raises(DataError):
        learn_vocabulary("symbols", ["a b c"], 6)
    with golden.raises(DataError):
        learn_vocabulary("bpe", ["abc"], 5000)


HOMES = ("tatoeba", "multi30k", "wmt-enfr", "europarl-it")


def real_sentences():
    """Return all real sentences of the test data by name and language."""
    folder = os.environ.get("ACTIVEMEM_TEST_DATA")
    if folder is None:
        pytest.skip("ACTIVEMEM_TEST_DATA names no folder with real pairs")
    for path in sorted(path for home in HOMES for path in Path(folder, home).iterdir()):
        if path.suffix in (".xz", ".gz"):
            data = (lzma if path.suffix == ".xz" else gzip).open(path).read().decode()
            rows = [line.split("\t") for line in data.split("\n")[:-1]]
            for column in range(2 if ".tsv" in path.name else 1):
                texts = (
                    [row[column] for row in rows] if ".tsv" in path.name else ["\t".join(row) for row in rows]
                )
                yield f"{path.name} {column}", texts


def test_all_real_sentences_come_back_as_they_were_though_half_of_them_were_never_seen():
    counts = Counter()
    for name, sentences in real_sentences():
        vocabulary = learn_vocabulary("spelled", sentences[::2], 32_000)
        for sentence in sentences:
            assert vocabulary.decode(vocabulary.encode(sentence)) == sentence, name
        counts[name] = len(sentences)
    assert counts.total() > 400_000
