"""The longest batch of a training, predicted from prepared data."""

import json
from itertools import islice

import pytest
import torch

from activemem.engine.core.resources import Machine
from activemem.engine.corpora.files import keep_files
from activemem.engine.data.prepared_lengths import PreparedLengths
from activemem.engine.objectives import build_objective
from activemem.engine.run.gpu_share import Accelerators, share
from activemem.engine.run.planning import longest_below
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.planning.memory_estimates import (
    GPU_CONTEXT,
    LongestBatch,
    MemoryEstimator,
    step_memory,
)
from activemem.studies.planning.plan import make_plan
from activemem.studies.study import load_study

from ...studies.planning.test_memory_held_for_a_while import most_allocated
from ...study_texts import study_text
from ..translation_factories import PLAIN, register_numbers, translation_text

CPU = torch.device("cpu")
LINES = study_text(
    model={"recipe": "2 * (conv(k=3) >> ff(64))", "d_model": 16},
    task={
        "name": "language_model",
        "corpus": "paradise-lost",
        "batching": "lines",
        "tokens": "bpe",
        "pieces": 2000,
        "longest": 300,
    },
    train={"curriculum": None, "batch_size": 16},
    factors={"seed": [0]},
)


def drawn_batches(settings, folder, most):
    """Return the first batches of a training."""
    return list(islice(build_objective(settings, CPU, folder)._iter_batches(0), most))


def test_of_lines_the_longest_stands_beside_such_of_the_mean_length(tmp_path):
    settings = load_study(LINES).trials[0].settings
    assert PreparedLengths(tmp_path)(settings) is None  # nothing is prepared, and nothing is prepared now
    assert not list(tmp_path.iterdir())
    batches = drawn_batches(settings, tmp_path, 600)
    found = PreparedLengths(tmp_path)(settings)
    assert found.tokens == max(batch.inputs.shape[1] for batch in batches) < 50
    valid = sum(int(batch.lengths.sum()) for batch in batches)
    rows = sum(len(batch.lengths) for batch in batches)
    assert found.share == pytest.approx(valid / rows / found.tokens, rel=0.02)
    longer = settings.model_copy(update={"task": settings.task.model_copy(update={"longest": 9})})
    assert PreparedLengths(tmp_path)(longer).tokens == 10  # its end among them


def test_a_step_on_the_longest_lines_holds_what_the_plan_says(tmp_path):
    study = load_study(LINES)
    settings = study.trials[0].settings
    training = Training(settings, CPU, tmp_path)
    batches = drawn_batches(settings, tmp_path, 600)
    longest = max(range(600), key=lambda place: batches[place].inputs.shape[1])
    training.take_steps()
    state = training.objective.state()
    training.objective.restore({**state, "position": longest})
    training.optimizer.zero_grad()
    states = (each for state in training.optimizer.state.values() for each in state.values())
    held = sum(each.nbytes for each in (*training.model.parameters(), *states))
    measured = most_allocated(training.take_steps) + held
    memory = MemoryEstimator(find_longest=longest_below(tmp_path))
    plan = make_plan(study, Store(tmp_path / "results"), memory=memory)
    assert plan.memory[1].total == pytest.approx(measured, rel=0.2)
    assert step_memory(settings).total > 3 * measured  # of the 300 pieces that a line might have


def test_of_pairs_the_longest_are_as_wide_as_their_longer_sides(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch, doubled=True)
    settings = load_study(translation_text(PLAIN, task={"longest": 100})).trials[0].settings
    batches = drawn_batches(settings, tmp_path, 40)
    sizes = [torch.maximum(batch.source_lengths, batch.target_lengths) for batch in batches]
    found = PreparedLengths(tmp_path)(settings)
    assert found.tokens == max(int(each.max()) for each in sizes) < 30
    widest = [batch for batch in batches if batch.targets.shape[1] == found.tokens]
    shares = [int(batch.target_lengths.sum()) / batch.targets.numel() for batch in widest]
    assert found.share == pytest.approx(max(shares), abs=0.1)
    large = settings.model_copy(update={"train": settings.train.model_copy(update={"batch_size": 2**12})})
    room = int(2.5 * (step_memory(large, longest=PreparedLengths(tmp_path)(large)).total + GPU_CONTEXT) / 0.9)
    node = Accelerators(count=1, device_bytes=room, cpus=16)
    assert share(Machine(cpus=1.0, data=tmp_path), [node], [large]) == 0.5
    assert share(Machine(cpus=1.0, data=tmp_path / "other"), [node], [large]) == 1.0


def test_of_labelled_sequences_the_beginning_is_read(tmp_path):
    rows = [
        {"text": [*"wxyz"][: 1 + start % 4], "label": [*"abcd"][: 1 + start % 4], "part": part}
        for start in range(30)
        for part in ("train", "dev", "test")
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = study_text(
        model={"recipe": "lstm"},
        task={
            "name": "token_classification",
            "corpus": {"path": "rows.jsonl", "split": "part"},
            "longest": 3,
        },
        train={"curriculum": None, "batch_size": 6},
        factors={"seed": [0]},
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = load_study(tmp_path / "study.toml")
    keep_files(study.own_corpus.files, tmp_path / "data" / "own")
    settings = study.trials[0].settings
    drawn_batches(settings, tmp_path / "data", 1)
    mean = (8 * 1 + 8 * 2 + 14 * 3) / 30
    found = PreparedLengths(tmp_path / "data")(settings)
    assert (found.tokens, found.share) == (3, pytest.approx(mean / 3))


def test_what_has_no_lines_or_is_broken_has_no_lengths(tmp_path):
    tagging = load_study(study_text(task={"name": "not"}, factors={"mixer": ["sa"]})).trials[0].settings
    assert PreparedLengths(tmp_path)(tagging) is None
    settings = load_study(LINES).trials[0].settings
    drawn_batches(settings, tmp_path, 1)
    (lines,) = (tmp_path / "encoded").glob("*/train.lines")
    lines.write_bytes(lines.read_bytes()[:-8])
    assert PreparedLengths(tmp_path)(settings) is None  # the trial tells of it
    lines.with_name("about.json").write_text("{", encoding="utf-8")
    assert PreparedLengths(tmp_path)(settings) is None


def test_of_batches_of_tokens_the_longest_pair_is_that_of_the_data():
    text = translation_text(PLAIN, task={"corpus": "multi30k-en-fr", "longest": 100})
    settings = load_study(text).trials[0].settings
    train = settings.train.model_copy(update={"batch_tokens": 200})
    filled = settings.model_copy(update={"train": train})
    assert step_memory(filled).tokens == 100  # two rows of these hold more than one of 101
    assert step_memory(filled, longest=LongestBatch(20)).tokens == 20
