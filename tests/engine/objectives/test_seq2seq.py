"""Seq2seq models in training: interruption, accumulation, scheduled sampling, and outputs."""

import math
import pickle
from dataclasses import replace

import pytest
import torch

from activemem import load_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.objectives.generation import PairData
from activemem.engine.objectives.seq2seq import GuessDraws, draw_symbols, sampling_share
from activemem.engine.trial.training import Training
from activemem.studies.catalog.tasks import TASKS, DegradationProblem, require_task
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry
from ..translation_factories import PLAIN, register_numbers, translation_study, translation_text

CPU = torch.device("cpu")
TIMED = "tokens_per_s"
NAIVE = "seq2seq(lstm, lstm)"


def settings(recipe=NAIVE, task="reverse_copy", seed=0, **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8, "dropout": 0.0},
            "task": {"name": task},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 8,
                "epochs": 10,
                "steps_per_epoch": 3,
            }
            | train,
            "seed": seed,
        }
    )


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    """Use few sequences, for fast scoring."""
    for name, problem in list(TASKS.items()):
        if isinstance(problem, DegradationProblem):
            replace_entry(TASKS, name, replace(problem, sequences=100, test_sequences=12))


def untimed(metrics):
    return {name: value for name, value in metrics.items() if name != TIMED}


@pytest.mark.parametrize(
    ("recipe", "scheduled"),
    [
        pytest.param(NAIVE, {"start": 0.2, "double_every": 4}, id="scheduled"),
        pytest.param("markov_neural_gpu(width=2)", None, id="always", marks=pytest.mark.heavy),
    ],
)
def test_a_restored_state_resumes_bit_for_bit(tmp_path, recipe, scheduled):
    asked = settings(recipe, sampling=0.3, scheduled_sampling=scheduled)
    whole, half = Training.begin(asked, CPU, tmp_path), Training.begin(asked, CPU, tmp_path)
    history = [untimed(whole.advance()) for _ in range(2)]
    first = untimed(half.advance())
    rest = Training.begin(asked, CPU, tmp_path)
    rest.restore(pickle.loads(pickle.dumps(half.state())))
    assert [first, untimed(rest.advance())] == history


def test_a_batch_in_parts_gives_the_same_losses(tmp_path):
    asked = {"task": "reverse_copy_repeats"}
    whole, parts = (Training.begin(settings(accumulate=count, **asked), CPU, tmp_path) for count in (1, 4))
    for _ in range(2):
        one, other = whole.advance(), parts.advance()
        for name in one.keys() - {TIMED}:
            assert other[name] == pytest.approx(one[name], rel=1e-4)


def test_models_of_one_seed_have_the_same_sequences(tmp_path):
    first, second = (PairData(settings(recipe), tmp_path) for recipe in (NAIVE, "neural_gpu"))
    other = PairData(settings(seed=1), tmp_path)
    assert torch.equal(first.test.source.tokens, second.test.source.tokens)
    assert not torch.equal(first.test.source.tokens, other.test.source.tokens)


def test_perplexity_is_per_word_and_accuracy_of_symbols(tmp_path):
    training = Training.begin(settings(), CPU, tmp_path)
    measured = training.advance()
    assert measured["dev_perplexity"] == pytest.approx(math.exp(measured["dev_loss"]))
    assert 0.0 <= measured["dev_accuracy"] < 0.5


def test_bits_per_byte_are_of_the_text_of_the_targets(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    study = translation_study(PLAIN, steps=1, task={"tokens": "bpe"})
    training = Training.begin(study.trials[0].settings, CPU, tmp_path)
    measured = training.advance()
    dev = PairData(study.trials[0].settings, tmp_path).dev
    lines = (tmp_path / "numbers" / "dev.tsv").read_text().splitlines()
    written = sum(len(line.split("\t")[1].encode()) + 1 for line in lines)
    nats = measured["dev_loss"] * len(dev.target.tokens)
    assert measured["dev_bits_per_byte"] == pytest.approx(nats / math.log(2) / written)


def test_tokens_that_lose_text_have_no_bits_per_byte(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    study = translation_study(PLAIN, steps=1, task={"tokens": "words"})  # which set punctuation apart
    measured = Training.begin(study.trials[0].settings, CPU, tmp_path).advance()
    assert {"dev_loss", "dev_accuracy"} <= measured.keys()
    assert "dev_bits_per_byte" not in measured


def test_tokens_that_lose_text_cannot_be_followed_by_bits_per_byte(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch)
    text = translation_text(PLAIN, task={"tokens": "words"}).replace(
        "epochs = 1", 'epochs = 1\nearly_stopping = { metric = "dev_bits_per_byte", patience = 2 }'
    )
    with pytest.raises(DataError, match='set \\[task\\] tokens = "bpe" or "spelled"'):
        run_study(load_study(text), tmp_path / "results", Machine(data=tmp_path), local=True)


def test_a_learnt_translation_is_also_written(tmp_path):
    training = Training.begin(
        settings("seq2seq(gru, gru)", "filter", epochs=2, steps_per_epoch=5), CPU, tmp_path
    )
    first, last = training.advance(), training.advance()
    assert "test_exact" not in first
    assert {"test_loss", "test_perplexity", "test_accuracy", "test_exact"} <= last.keys()
    assert last["test_exact"] == 0.0


@pytest.mark.heavy
def test_a_copy_that_is_learnt_is_exact(tmp_path, monkeypatch):
    easy = replace(require_task("reverse_copy"), symbols=4, min_length=1, max_length=4, sequences=300)
    replace_entry(TASKS, "reverse_copy", easy)
    asked = settings("seq2seq(gru, gru, attention=luong)", epochs=8, steps_per_epoch=60, batch_size=32)
    training = Training.begin(
        asked.model_copy(update={"model": asked.model.model_copy(update={"d_model": 32})}), CPU, tmp_path
    )
    *_, last = [training.advance() for _ in range(8)]
    assert last["test_exact"] > 0.9
    assert last["test_accuracy"] > 0.9


@pytest.mark.parametrize("scheduled", [None, {"start": 0.5, "double_every": 1}], ids=["always", "scheduled"])
def test_a_batch_in_parts_reads_the_same_guesses(tmp_path, scheduled):
    asked = {"sampling": 0.7, "scheduled_sampling": scheduled}
    whole, parts = (Training.begin(settings(accumulate=count, **asked), CPU, tmp_path) for count in (1, 4))
    for _ in range(3):
        whole.take_steps()
        parts.take_steps()
    for name, weight in whole.weights().items():
        torch.testing.assert_close(parts.weights()[name], weight, rtol=1e-3, atol=1e-5)


def test_guesses_are_drawn_with_their_shares_and_none_is_padding():
    shares = torch.tensor([[0.0, 0.5, 0.0, 0.3, 0.2], [0.0, 0.0, 0.0, 0.0, 1.0]])
    uniform = (torch.arange(1000) / 1000).unsqueeze(1)
    drawn = torch.stack([draw_symbols(shares, each.expand(2)) for each in uniform])
    counts = torch.nn.functional.one_hot(drawn, 5).sum(0) / 1000
    torch.testing.assert_close(counts.float(), shares, atol=2e-3, rtol=0.0)
    largest = torch.full((2,), 1 - 2.0**-24)
    assert draw_symbols(shares * (1 + 2.0**-23), largest).tolist() == [4, 4]


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_share_of_symbols_is_replaced_at_one_position_for_all_pairs_or_separately(share):
    targets = torch.ones((200, 50), dtype=torch.long)
    for together in (True, False):
        draws = GuessDraws.of(targets, share, 1, together=together)
        assert draws.replaced.shape == draws.uniform.shape == targets.shape
        assert draws.replaced.float().mean() == pytest.approx(share, abs=0.12 if together else 0.02)
        same = bool(draws.replaced.eq(draws.replaced[:1]).all())
        assert same == (together or share in (0.0, 1.0))
        assert draws.part(1, 4).uniform.equal(draws.uniform[50:100])


@pytest.mark.usefixtures("bf16_at_any_size")
@pytest.mark.parametrize("scheduled", [None, {"start": 0.5, "double_every": 1}], ids=["always", "scheduled"])
def test_guesses_in_16_bits_leave_every_weight_its_gradient(tmp_path, scheduled):
    recipe, asked = "seq2seq(sa(heads=2) >> ff(8), sa(heads=2) >> ff(8))", {"precision": "bf16"}
    without = Training.begin(settings(recipe, **asked), CPU, tmp_path)
    with_guesses = Training.begin(
        settings(recipe, sampling=1.0, scheduled_sampling=scheduled, **asked), CPU, tmp_path
    )
    learnt = [
        {name for name, weight in each.model.named_parameters() if weight.grad is not None}
        for each in (without, with_guesses)
        if each.take_steps() is None
    ]
    assert learnt[0] == learnt[1] == dict(without.model.named_parameters()).keys()


@pytest.mark.parametrize("step", [0, 1, 70_000, 100_000, 432_000, 433_000, 10_000_000])
def test_the_share_of_guesses_grows_as_in_the_program_of_the_neural_gpu(step):
    decay = max(0.05, 0.5 ** (step / 100_000))
    train = settings(sampling=0.1, scheduled_sampling={"start": 0.005, "double_every": 100_000}).train
    assert sampling_share(train, step) == pytest.approx(0.1 * 0.05 / decay)


def test_scheduled_guesses_are_at_one_position_for_all_targets_and_depend_on_what_was_read(tmp_path):
    made = Training.begin(
        settings("seq2seq(gru, gru)", sampling=1.0, scheduled_sampling={"start": 0.5, "double_every": 10}),
        CPU,
        tmp_path,
    )
    objective, model = made.objective, made.model.eval()
    with torch.no_grad():
        model.output.weight *= 1e4  # what is drawn is certain
    objective.begin_batch(1)
    batch = objective.batch
    replaced = torch.zeros_like(batch.targets, dtype=torch.bool)
    replaced[:, :6:2] = True
    draws = GuessDraws(replaced, torch.full(batch.targets.shape, 0.5))
    read = objective._guess(model, batch.sources, batch.targets, draws)
    state, previous = model.begin(batch.sources, batch.target_lengths), torch.zeros_like(read[:, 0])
    for place in range(6):
        logits, state = model.step(state, previous)
        logits[:, 0] = -torch.inf
        guess = logits.argmax(-1) if place % 2 == 0 else batch.targets[:, place]
        previous = torch.where(batch.targets[:, place] == 0, 0, guess)
        assert read[:, place].equal(previous)
    assert read[:, 6:].equal(batch.targets[:, 6:])
