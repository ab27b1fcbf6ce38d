"""A corpus of a few easy sentences, and studies that learn to translate them within seconds."""

import hashlib
import random

from activemem import SourceFile, load_study
from activemem.studies.catalog import datasets
from activemem.studies.catalog.datasets import PairFiles, ParallelCorpus

from ..registry_entries import replace_entry
from ..study_texts import study_text

NUMBERS = {"one": "un", "two": "deux", "three": "trois", "four": "quatre", "five": "cinq"}
SEQ2SEQ = "seq2seq(gru, gru, attention=luong)"
PLAIN = "seq2seq(gru, gru)"
MARKOV = "markov_neural_gpu(width=2)"


def register_numbers(folder, monkeypatch, *, doubled=False, shuffled=False):
    """Register a corpus of counted things in the data folder; doubled ones have several lengths.

    Unless they are shuffled, the splits count different things.
    """
    pairs = [
        (f"{a} {b}, {c} {noun}", f"{NUMBERS[a]} {NUMBERS[b]}, {NUMBERS[c]} {french}")
        for a in NUMBERS
        for b in NUMBERS
        for c in NUMBERS
        for noun, french in (("cats.", "chats."), ("dogs.", "chiens."))
    ]
    if doubled:
        pairs = [double(pair, number % 3) for number, pair in enumerate(pairs)]
    if shuffled:
        random.Random(0).shuffle(pairs)
    files = {}
    (folder / "numbers").mkdir()
    for split, chosen in (("train", pairs[::2]), ("dev", pairs[1::8]), ("test", pairs[3::8])):
        data = "".join(f"{source}\t{target}\n" for source, target in chosen).encode()
        (folder / "numbers" / f"{split}.tsv").write_bytes(data)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        files[split] = (PairFiles(source=SourceFile(names=(f"{split}.tsv",), digest=digest)),)
    corpus = ParallelCorpus(
        name="numbers",
        title="Counted things",
        languages=("en", "fr"),
        folder="numbers",
        files=files,
        pairs=len(pairs) // 2,
        licence="",
        source="",
    )
    replace_entry(datasets.all_datasets(), "numbers", corpus)


def double(pair, without):
    """Return the pair without its first words, each target word twice."""
    source, target = (sentence.split(" ")[without:] for sentence in pair)
    return " ".join(source), " ".join(word for word in target for _ in range(2))


def translation_text(*models, keep_weights=True, epochs=1, steps=20, task=None, **tables):
    """Return the text of a translation study."""
    return study_text(
        study={"name": "numbers", "title": "Counted things in French", "keep_weights": keep_weights},
        model={"recipe": "{model}", "d_model": 16, "position": "none", "dropout": 0.0},
        task={"name": "translation", "corpus": "numbers", "tokens": "words", "pieces": 300, "beam": 2}
        | (task or {}),
        train={
            "optimizer": {"name": "adam", "lr": 0.02},
            "batch_size": 16,
            "epochs": epochs,
            "steps_per_epoch": steps,
            "curriculum": None,
        },
        factors={"model": list(models), "seed": [0]},
        **tables,
    )


def translation_study(*models, **options):
    """Return the translation study."""
    return load_study(translation_text(*models, **options))
