from types import SimpleNamespace

import pytest

from activemem import Corpus, register_dataset
from activemem.studies import CorpusError, dataset_names, require_dataset
from activemem.studies.catalog.tasks import LanguageModelSettings, vocabulary_size


def task(corpus, tokens="characters", **more):
    return LanguageModelSettings(name="language_model", corpus=corpus, tokens=tokens, **more)


def test_the_corpora_are_those_of_the_papers_their_small_ones_and_one_that_is_installed():
    assert dataset_names(Corpus) == (
        "enwik8",
        "paradise-lost",
        "text8",
        "text8-6m",
        "wikitext-103",
        "wikitext-2",
    )
    assert [name for name in dataset_names(Corpus) if require_dataset(name, Corpus).installed] == [
        "paradise-lost"
    ]


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        (task("enwik8"), 205),
        (task("text8"), 28),
        (task("text8-6m"), 28),
        (task("wikitext-103", "words"), 267_735),
        (task("wikitext-2", "words"), 33_278),
        (task("wikitext-2"), 178),
        (task("wikitext-103", "bpe"), 32_000),
        (task("paradise-lost", "bpe", pieces=1000), 1000),
    ],
    ids=lambda value: (
        f"{value.corpus}-{value.tokens}" if isinstance(value, LanguageModelSettings) else str(value)
    ),
)
def test_a_vocabulary_has_its_published_size(asked, size):
    assert vocabulary_size(asked) == size


@pytest.mark.parametrize("name", dataset_names(Corpus))
def test_an_alphabet_has_each_byte_once_and_no_end_of_line(name):
    alphabet = require_dataset(name, Corpus).alphabet
    assert len(set(alphabet)) == len(alphabet)
    assert ord("\n") not in alphabet


@pytest.mark.parametrize("name", dataset_names(Corpus))
def test_splits_of_one_file_follow_each_other_without_a_gap(name):
    train, dev, test = (require_dataset(name, Corpus).splits[split] for split in ("train", "dev", "test"))
    if train.source == test.source:
        assert (train.start, dev.start, test.start) == (0, train.stop, dev.stop)
        assert test.stop == train.source.size
    else:
        assert len({train.source, dev.source, test.source}) == 3


def test_a_name_that_no_corpus_has_is_reported_with_the_nearest():
    with pytest.raises(CorpusError) as caught:
        vocabulary_size(SimpleNamespace(corpus="wikitext103", tokens="words", pieces=0, batching="stream"))
    assert str(caught.value) == "unknown corpus 'wikitext103'; nearest: wikitext-103"


def test_a_text_without_a_standard_vocabulary_is_not_cut_into_words():
    with pytest.raises(CorpusError) as caught:
        vocabulary_size(SimpleNamespace(corpus="text8", tokens="words", pieces=0, batching="stream"))
    expected = 'tokens = "words" needs a standard vocabulary, but text8 has none: use "characters" or "bpe"'
    assert str(caught.value) == expected


def test_a_text_whose_punctuation_is_part_of_its_words_is_not_cut_into_sentences():
    with pytest.raises(CorpusError) as caught:
        vocabulary_size(SimpleNamespace(corpus="text8", tokens="bpe", pieces=400, batching="sentences"))
    expected = (
        'batching = "sentences" needs a space before each mark that ends a sentence, and text8 has none: '
        'use "stream" or "lines"'
    )
    assert str(caught.value) == expected


def test_a_second_corpus_of_a_name_is_refused(golden):
    one = require_dataset("text8", Corpus)
    with golden.raises(ValueError):
        register_dataset(
            Corpus(
                name="text8",
                title="another",
                folder="other",
                splits=one.splits,
                alphabet=b"a",
                licence="none",
                source="nowhere",
            )
        )
