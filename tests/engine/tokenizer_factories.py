"""Files of pretrained tokenizers, trained on a text, and the tasks of texts that are read with them."""

import tokenizers

from activemem import load_study
from activemem.engine.corpora import keep_files
from activemem.engine.data.text import open_corpus

from ..study_texts import study_text


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
