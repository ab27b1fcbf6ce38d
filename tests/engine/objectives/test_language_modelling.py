"""Language models in training: interruption, accumulation, and scoring of every token once."""

import math
import pickle

import pytest
import torch

from activemem import load_study, run_study
from activemem.blocks.core.block import StreamState
from activemem.engine import DataError, Machine
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text
from ..text_factories import tiny_corpus

CPU = torch.device("cpu")
TIMED = "tokens_per_s"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a data folder with one small corpus, registered during these tests."""
    folder = tmp_path_factory.mktemp("data")
    with tiny_corpus(folder):
        yield folder


def settings(recipe="conv(k=3) >> ff(16)", model=(), task=(), **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 16, "position": "none"} | dict(model),
            "task": {"name": "language_model", "corpus": "tiny", "context": 8, "dev_tokens": 200}
            | dict(task),
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 4,
                "epochs": 4,
                "steps_per_epoch": 5,
            }
            | train,
        }
    )


def untimed(metrics):
    return {name: value for name, value in metrics.items() if name != TIMED}


LINES = {"batching": "lines", "tokens": "words"}
PACKED = {"batching": "packed"}
RECIPES = ("conv(k=3) >> ff(16)", "cgru(k=2) + persistent_conv(k=3)", "tied(2 * conv(k=2))")


@pytest.mark.parametrize(
    ("recipe", "task"), [*zip(RECIPES, [{}, PACKED, LINES], strict=True)], ids=["stream", "packed", "lines"]
)
def test_a_restored_state_resumes_bit_for_bit(folder, recipe, task):
    asked = settings(recipe, task=task, schedule={"name": "plateau", "patience": 1})
    whole, half = Training.begin(asked, CPU, folder), Training.begin(asked, CPU, folder)
    history = [untimed(whole.advance()) for _ in range(4)]
    first = [untimed(half.advance()) for _ in range(2)]
    rest = Training.begin(asked, CPU, folder)
    rest.restore(pickle.loads(pickle.dumps(half.state())))
    assert first + [untimed(rest.advance()) for _ in range(2)] == history


@pytest.mark.parametrize("number", [4, 3])  # of as many rows, or not
@pytest.mark.parametrize("task", [{}, PACKED, LINES], ids=["stream", "packed", "lines"])
def test_a_batch_in_parts_gives_the_same_losses(folder, task, number):
    whole, parts = (
        Training.begin(settings(model={"dropout": 0.0}, task=task, accumulate=count), CPU, folder)
        for count in (1, number)
    )
    for _ in range(2):
        one, other = whole.advance(), parts.advance()
        for name in one.keys() - {TIMED}:
            assert other[name] == pytest.approx(one[name], rel=1e-4)


def test_the_loss_falls_below_that_of_guessing(folder):
    training = Training.begin(settings(steps_per_epoch=40), CPU, folder)
    *_, last = [training.advance() for _ in range(4)]
    assert last["test_loss"] < math.log(training.objective.interface.vocab) - 1.0


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_split_is_scored_as_in_one_pass_over_the_whole(folder, recipe):
    training = Training.begin(settings(recipe, epochs=1), CPU, folder)
    measured = training.advance()
    tokens = training.objective._text.test.tokens.long()[None]
    with torch.no_grad():
        nats, _ = training.model.nll_stream(tokens[:, :-1], tokens[:, 1:], StreamState())
    assert measured["test_loss"] == pytest.approx(float(nats.double().mean()), rel=1e-5)
    assert measured["test_bpc"] == pytest.approx(measured["test_loss"] / math.log(2))


def test_for_lines_the_mean_over_all_positions_of_ordered_batches_is_reported_too(folder):
    asked = settings(task=LINES, epochs=1)
    training = Training.begin(asked, CPU, folder)
    measured = training.advance()
    split, rows = training.objective._text.test, asked.train.batch_size
    lines = [line for line, length in enumerate(split.line_lengths.tolist()) if 1 < length <= 301]
    losses = []
    for first in range(0, len(lines) // rows * rows or 1, rows):
        targets, lengths = split.padded_lines(lines[first : first + rows])
        inputs = torch.nn.functional.pad(targets, (1, -1), value=0)
        with torch.no_grad():
            losses.append(float(training.model.nll(inputs, targets, lengths).double().mean()))
    assert measured["test_loss_padded"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert measured["test_loss_padded"] < measured["test_loss"]
    assert "test_loss_padded" not in Training.begin(settings(epochs=1), CPU, folder).advance()


def test_words_have_a_perplexity_and_characters_bits(folder):
    words = Training.begin(settings(task=LINES, epochs=1), CPU, folder).advance()
    assert words["test_perplexity"] == pytest.approx(math.exp(words["test_loss"]))
    assert "test_bpc" not in words
    characters = Training.begin(settings(epochs=1), CPU, folder).advance()
    assert "test_perplexity" not in characters


@pytest.mark.parametrize(
    "task", [LINES, LINES | {"batching": "stream", "context": 7}], ids=["lines", "stream"]
)
def test_a_perplexity_is_reported_without_the_ends_of_lines_too(folder, task):
    training = Training.begin(settings(task=task, epochs=1), CPU, folder)
    measured = training.advance()
    text = training.objective._text
    split, end = text.test, text.vocabulary.end
    if task is LINES:
        inputs, lengths = split.padded_lines(
            [line for line, n in enumerate(split.line_lengths) if 1 < n <= 301]
        )
        targets, valid = inputs, torch.arange(inputs.shape[1]) < lengths[:, None]
        with torch.no_grad():
            inputs = torch.nn.functional.pad(targets, (1, -1), value=0)
            nats = training.model.nll(inputs, targets, lengths)[valid]
        targets = targets[valid]
    else:
        tokens = split.tokens.long()[None]
        with torch.no_grad():
            nats = training.model.nll_stream(tokens[:, :-1], tokens[:, 1:], StreamState())[0][0]
        targets = tokens[0, 1:]
    words = nats[targets != end]
    assert 0 < len(words) < len(nats)
    assert measured["test_perplexity"] == pytest.approx(math.exp(float(nats.mean())), rel=1e-5)
    assert measured["test_perplexity_without_ends"] == pytest.approx(math.exp(float(words.mean())), rel=1e-5)


def test_only_the_last_epoch_scores_the_test_split(folder):
    training = Training.begin(settings(epochs=2), CPU, folder)
    first, last = training.advance(), training.advance()
    assert "test_loss" not in first
    assert {"dev_loss", "test_loss"} <= last.keys()


@pytest.mark.usefixtures("bf16_at_any_size")
def test_bf16_learns_as_well(folder):
    training = Training.begin(settings(precision="bf16", steps_per_epoch=40), CPU, folder)
    *_, last = [training.advance() for _ in range(4)]
    assert last["test_loss"] < math.log(training.objective.interface.vocab) - 1.0


def test_pieces_are_scored_in_whole_lines_and_characters_to_the_last_one(folder):
    characters = Training.begin(settings(task={"dev_tokens": 2}), CPU, folder).objective
    assert len(characters._truncate(characters._text.dev, 2).tokens) == 2
    words = Training.begin(settings(task=LINES), CPU, folder).objective
    first = words._truncate(words._text.dev, 2)
    assert len(first.lines) == 2
    assert len(first.tokens) == int(first.lines[-1]) == first.words


def test_a_study_that_is_done_needs_its_data_no_more(folder, tmp_path, notes):
    store = Store(tmp_path / "results")
    study = load_study(STUDY)
    with pytest.raises(DataError, match="tiny"):
        run_study(study, store, Machine(data=tmp_path), notes, local=True)
    assert store.records.latest() is None
    assert run_study(study, store, Machine(data=folder), notes, local=True).done == 1
    assert run_study(study, store, Machine(data=tmp_path), notes, local=True).done == 1


STUDY = study_text(
    study={"name": "text", "title": "A text"},
    model={"recipe": "conv(k=3)"},
    task={"name": "language_model", "corpus": "tiny", "context": 8},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "epochs": 1, "curriculum": None},
)
