"""Vocabularies of texts, compared with Python's own splitting."""

import re

import numpy as np
import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from activemem.engine import DataError
from activemem.engine.data import token_files
from activemem.engine.data.vocabularies import pieces, texts
from activemem.engine.data.vocabularies.pieces import TextPieceVocabulary, lowered, separate_punctuation
from activemem.engine.data.vocabularies.texts import CharacterVocabulary, TextWordVocabulary
from activemem.engine.data.vocabularies.vocabulary import PADDING

LETTERS = b" .<>abcku\tn"
TEXTS = st.text(LETTERS.decode() + "\n", max_size=60).map(str.encode)


def of_lines(encoded):
    """Return the tokens of each line as lists."""
    return [line.tolist() for line in np.split(encoded.tokens, np.cumsum(encoded.lengths)[:-1])]


def lines_of(text):
    """Return the lines of a text, treating the last one as ended."""
    return (text.removesuffix(b"\n")).split(b"\n")


@given(text=TEXTS)
def test_characters_are_their_places_in_the_alphabet_and_a_line_ends_in_zero(text):
    encoded = CharacterVocabulary(LETTERS).encode_bytes(text)
    assert of_lines(encoded) == [[LETTERS.index(byte) + 1 for byte in line] + [0] for line in lines_of(text)]
    assert encoded.words.tolist() == [len(line.split()) + 1 for line in lines_of(text)]


@given(text=TEXTS)
def test_words_are_their_places_in_the_vocabulary_and_a_line_ends_in_zero(text):
    vocabulary = TextWordVocabulary.learn(text)
    encoded, known = vocabulary.encode_bytes(text), vocabulary.content().splitlines()
    assert [[known[place] for place in line] for line in of_lines(encoded)] == [
        [*line.split(), b"<eos>"] for line in lines_of(text)
    ]
    assert encoded.words.tolist() == [len(line.split()) + 1 for line in lines_of(text)]


def test_a_text_of_many_parts_is_encoded_as_a_whole(monkeypatch):
    text = b"a b\n\nc a c\nb"
    vocabulary = TextWordVocabulary.learn(text)
    whole = vocabulary.encode_bytes(text)
    monkeypatch.setattr(texts, "_LINES", 2)
    assert np.array_equal(vocabulary.encode_bytes(text).tokens, whole.tokens)


def test_frequent_words_come_first_and_equally_frequent_ones_by_spelling():
    assert TextWordVocabulary.learn(b"b c a\nc\n").content() == b"<eos>\nc\na\nb\n"
    assert TextWordVocabulary.learn(b"b c a\nc\n", 3).content() == b"<eos>\n<unk>\nc\n"


def test_a_word_that_is_not_in_the_vocabulary_is_the_unknown_word_if_there_is_one(golden):
    assert TextWordVocabulary(b"<eos>\na\n<unk>\n").encode_bytes(b"a b").tokens.tolist() == [1, 2, 0]
    with golden.raises(DataError):
        TextWordVocabulary(b"<eos>\na\n").encode_bytes(b"a b")


def test_a_byte_that_is_not_in_the_alphabet_is_refused(golden):
    with golden.raises(DataError):
        CharacterVocabulary(b"ab").encode_bytes(b"abacus")


@pytest.mark.parametrize(("vocab", "kind"), [(256, "u1"), (257, "i2"), (32768, "i2"), (32769, "i4")])
def test_tokens_have_the_smallest_type_that_holds_them(vocab, kind):
    assert token_files.smallest_dtype(vocab).str[1:] == kind


@pytest.mark.parametrize(
    ("line", "normalised"),
    [
        ("The well-known Man.\n", "the well @-@ known man ."),
        ('"No," she said; (why?)', '" no , " she said ; ( why ? )'),
        ("<unk> of 1 @,@ 000 @-@ year", "<unk> of 1 @,@ 000 @-@ year"),
        ("first--for Heaven", "first - - for heaven"),
        ("  two  spaces ", "two spaces"),
        ("हिन्दी-किताब।", "हिन्दी @-@ किताब ।"),
        ("Cafe\u0301!", "cafe\u0301 !"),
        ("\n", ""),
    ],
)
def test_a_line_is_lower_case_with_its_punctuation_apart(line, normalised):
    assert separate_punctuation(line) == normalised
    assert separate_punctuation(normalised) == normalised


def test_a_line_that_is_separated_already_is_only_made_lower_case():
    assert lowered(" The U.S. Army <unk> \n") == "the u.s. army <unk>"


VERSES = b"""Of Man's first disobedience, and the fruit
Of that forbidden tree whose mortal taste
Brought death into the World, and all our woe,

With loss of <unk>, till one greater Man
"""


@pytest.fixture(scope="module")
def vocabulary():
    return TextPieceVocabulary.learn(VERSES, 310)


@pytest.fixture(scope="module")
def model(vocabulary):
    return vocabulary.content()


def test_pieces_spell_the_normalised_text_and_each_line_ends_in_a_mark(vocabulary, model):
    encoded = vocabulary.encode_bytes(VERSES)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert processor.GetPieceSize() == 310
    for tokens, line in zip(of_lines(encoded), lines_of(VERSES), strict=True):
        assert tokens[-1] == vocabulary.end
        assert not {PADDING, processor.unk_id(), vocabulary.end} & set(tokens[:-1])
        assert processor.Decode(tokens[:-1]) == separate_punctuation(line.decode())
    assert encoded.words.tolist() == [len(line.split()) + 1 for line in lines_of(VERSES)]


def test_an_open_word_is_one_piece_and_an_unseen_sign_is_spelt_in_bytes(model):
    tokens = TextPieceVocabulary(model, separated=True).encode_bytes("<unk> €".encode()).tokens.tolist()
    spelt = [sentencepiece.SentencePieceProcessor(model_proto=model).IdToPiece(each) for each in tokens]
    assert spelt == ["▁<unk>", "▁", "<0xE2>", "<0x82>", "<0xAC>", "<eos>"]


def test_a_line_that_is_cut_has_the_pieces_of_the_whole(vocabulary, monkeypatch):
    line = re.sub(rb"\s+", b" ", VERSES) * 3
    whole = vocabulary.encode_bytes(line)
    monkeypatch.setattr(pieces, "_MAX_CHARACTERS", 20)
    cut = vocabulary.encode_bytes(line)
    assert len(whole.lengths) == len(cut.lengths) == 1
    assert np.array_equal(whole.tokens, cut.tokens)


def test_training_again_gives_the_same_model(model):
    assert TextPieceVocabulary.learn(VERSES, 310).content() == model


def test_a_vocabulary_that_the_text_cannot_fill_is_refused():
    with pytest.raises(DataError) as caught:
        TextPieceVocabulary.learn(VERSES, 5000)
    message = str(caught.value)
    assert message.startswith("no vocabulary of 5,000 pieces ")


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_the_bytes_of_a_text_do_not_depend_on_what_its_tokens_are(kind):
    text = "Ein Haus, naïve  words\n\nça va\nlast line without an end".encode()
    vocabularies = {
        "characters": lambda: CharacterVocabulary(bytes(sorted(set(text) - {10}))),
        "words": lambda: TextWordVocabulary.learn(text),
        "bpe": lambda: TextPieceVocabulary.learn(text * 20, 300),
    }
    encoded = vocabularies[kind]().encode_bytes(text)
    assert encoded.bytes.tolist() == [len(line) + 1 for line in text.split(b"\n")]
    first = encoded.tokens[0]
    assert 1 <= encoded.first_bytes <= 3
    assert encoded.first_bytes == {"characters": 1, "words": 3}.get(kind, encoded.first_bytes), first
