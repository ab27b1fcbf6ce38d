"""Files of pretrained tokenizers, trained on a text, and the tasks of texts that are read with them."""

import base64

import tokenizers

from activemem import load_study
from activemem.engine.corpora.files import keep_files
from activemem.engine.data.text.corpus import open_corpus

from ..study_texts import study_text

GPT2_WORDS = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def byte_level_json(text, size=300, normalizer=None):
    """Return a tokenizer.json of byte-level byte pair encoding."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        show_progress=False,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    return tokenizer.to_str().encode()


def ranks_of(content):
    """Return the file of ranks of tiktoken with the same merges as a byte-level tokenizer.json."""
    tokenizer = tokenizers.Tokenizer.from_buffer(content)
    tokens = [tokenizer.id_to_token(number) for number in range(1, tokenizer.get_vocab_size())]
    alphabet = _byte_alphabet()
    spelt = [bytes(alphabet[sign] for sign in token) for token in tokens]
    return b"".join(base64.b64encode(each) + b" %d\n" % rank for rank, each in enumerate(spelt))


def _byte_alphabet():
    """Return the byte of each character of GPT-2's alphabet: visible bytes first, then the others."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + place): byte for place, byte in enumerate(others)
    }


def language_task(folder, corpus, **task):
    """Return the task of a study in a folder, whose files are kept in the folder's `data`."""
    text = study_text(
        model={"recipe": "conv(k=3)"},
        task={"name": "language_model", "corpus": corpus, "context": 8, **task},
        train={"curriculum": None, "batch_size": 2},
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    study = load_study(folder / "study.toml")
    if study.own_corpus is not None:
        keep_files(study.own_corpus.files, folder / "data" / "own")
    (trial,) = study.trials
    return trial.settings.task


def open_text(folder, corpus, **task):
    """Return the tokenised text of a study in a folder."""
    return open_corpus(language_task(folder, corpus, **task), folder / "data")
