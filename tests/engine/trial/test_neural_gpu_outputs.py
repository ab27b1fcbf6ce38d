"""Neural GPUs for translation and parsing: training, outputs of the test split, and scores."""

import pytest
import torch

from activemem import load_study
from activemem.engine.data.treebanks import bracket_of, parse_linearised
from activemem.engine.decoding.measures import bleu
from activemem.engine.decoding.searches import Decoding
from activemem.engine.objectives.generation import PairData, generate
from activemem.engine.probes.trained_models import load_kept_model
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.storage import Store
from activemem.studies.catalog import datasets
from activemem.studies.catalog.datasets import Treebank

from ...registry_entries import replace_entry
from ...study_texts import study_text
from ..translation_factories import register_numbers

CPU = torch.device("cpu")
OPTIONS = "width=2, maps=8, input_norm=true, first_unit=true"
NOUNS = ("cat", "dog", "bird", "fish")
FILES = {"train": range(1, 13), "dev": range(13, 15), "test": range(15, 17)}


def register_trees(folder, monkeypatch):
    """Register a small treebank in the data folder, whose sentences are about cats that see dogs."""
    subjects = [f"(NP (DT the) (NN {noun}))" for noun in NOUNS]
    phrases = ["(VP (VBZ sleeps))", *(f"(VP (VBZ sees) {whom})" for whom in subjects[:3])]
    trees = [f"( (S {who} {does}) )\n" for who in subjects for does in phrases]
    (folder / "animals").mkdir()
    for number, tree in enumerate(trees, 1):
        (folder / "animals" / f"wsj_{number:04}.mrg").write_text(tree)
    bank = Treebank(
        name="animals",
        title="Animals",
        folder="animals",
        splits={split: (numbers,) for split, numbers in FILES.items()},
        sentences={split: len(numbers) for split, numbers in FILES.items()},
        licence="none",
        source="made here",
    )
    replace_entry(datasets.all_datasets(), "animals", bank)


def train(recipe, task, store, folder):
    """Train a model for some seconds; return its study."""
    text = study_text(
        study={"keep_weights": True},
        model={
            "recipe": recipe,
            "d_model": 16,
            "dropout": 0.1,
            "embedding": "unit_uniform",
            "output_bias": False,
        },
        task={"pieces": 300, "beam": 2, **task},
        train={
            "optimizer": {"name": "adam", "lr": 0.01, "eps": 1e-3},
            "batch_size": 8,
            "epochs": 1,
            "steps_per_epoch": 30,
            "curriculum": None,
            "sampling": 0.1,
            "scheduled_sampling": {"start": 0.005, "double_every": 10},
            "label_smoothing": 0.1,
            "schedule": {"name": "recent", "every": 10},
        },
        factors={"seed": [0]},
    )
    study = load_study(text)
    attempt = Attempt(
        Job(trial=study.trials[0], attempt=0, run="run", keep_weights=True), store, CPU, data=folder
    )
    while not attempt.ended:
        attempt.advance()
    assert store.trials()["reason"].to_list() == [None]
    return study


def final(store):
    return {each["name"]: each["value"] for each in store.trials()["metrics"].to_list()[0]}


@pytest.mark.heavy
def test_trees_are_preferred_among_the_tried_lengths(tmp_path, monkeypatch):
    register_trees(tmp_path, monkeypatch)
    store = Store(tmp_path / "results")
    task = {
        "name": "parsing",
        "corpus": "animals",
        "tokens": "words",
        "size_ratio": 3.5,
        "size_margin": 8,
        "prefer_trees": True,
    }
    study = train(f"extended_neural_gpu(tape=all, {OPTIONS})", task, store, tmp_path)
    kept, found = store.outputs(), final(store)
    lines = list(zip(kept["source"], kept["output"], strict=True))
    trees = [parse_linearised(output.split(" "), source.split(" ")) for source, output in lines]
    assert found["tree_share"] == sum(tree is not None for tree in trees) / len(lines)
    assert all(len(output.split(" ")) <= 3.5 * len(source.split(" ")) + 8 for source, output in lines)
    assert kept["beam"].unique().to_list() == [2]

    preferred, likeliest = (rewrite(study, store, tmp_path, prefer_trees=prefer) for prefer in (True, False))
    assert preferred == kept["output"].to_list()
    assert sum(faults(*line) for line in lines) < sum(map(faults, kept["source"], likeliest))


def faults(source, output):
    """Return the number of bracket faults of an output for its source."""
    kinds = [bracket_of(symbol) for symbol in output.split(" ")]
    return 10 * abs(kinds.count(0) - len(source.split(" "))) + abs(sum(kinds))


def rewrite(study, store, folder, *, prefer_trees):
    """Return the outputs of the trained model, with or without preferring trees."""
    (trial,) = study.trials
    task = trial.settings.task.model_copy(update={"prefer_trees": prefer_trees})
    settings = trial.settings.model_copy(update={"task": task})
    model, pairs = (
        load_kept_model(trial.settings, store.files.weights_file(trial.id)),
        PairData(settings, folder),
    )
    decoding = Decoding.of_task(settings)
    return pairs.sentences(
        generate(model, pairs.test, decoding, pairs=pairs, batch_size=settings.train.batch_size, device=CPU)
    )


@pytest.mark.heavy
@pytest.mark.parametrize("recipe", ["neural_gpu", "extended_neural_gpu"])
def test_translations_of_spelled_words_are_scored(recipe, tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    store = Store(tmp_path / "results")
    task = {
        "name": "translation",
        "corpus": "numbers",
        "tokens": "spelled_digits",
        "joint_vocabulary": True,
        "size_margin": 8,
    }
    train(f"{recipe}({OPTIONS})", task, store, tmp_path)
    kept, found = store.outputs(), final(store)
    assert len(kept) == 31
    assert bleu(kept["output"].to_list(), kept["reference"].to_list()).score == found["bleu"]
    assert found["test_perplexity"] > 1
