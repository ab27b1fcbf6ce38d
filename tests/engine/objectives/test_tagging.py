"""The algorithmic tasks with random or growing lengths and fixed test sequences: accuracy by length."""

import hashlib
import pickle

import pytest
import torch

from activemem import load_study, open_study, run_study
from activemem.engine.core.models import sequence_flops
from activemem.engine.core.process import derive_seed
from activemem.engine.objectives.build import build_objective
from activemem.engine.tasks.algorithmic import draw_dev_batches, draw_test_batch, get_task, registered_tasks
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.catalog.tasks import read_task_settings
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text

CPU = torch.device("cpu")
CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))

NAME = {"name": "far"}
STUDY = study_text(
    study={"name": "far", "title": "Beyond the lengths of training"},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    task={"name": "not", "test_lengths": [8, 16, 32], "test_examples": 24, "dev_examples": 24},
    train={
        "optimizer": {"name": "adam", "lr": 0.01},
        "batch_size": 8,
        "steps_per_epoch": 4,
        "lengths": [1, 6],
        "curriculum": None,
    },
    factors={"mixer": ["conv(k=3)", "sa(heads=2, head_width=8)"], "seed": [0, 1]},
    curve=[
        {
            "name": "far",
            "kind": "line",
            "value": "test_accuracy",
            "x": "index",
            "series": "mixer",
            "logx": True,
        }
    ],
    table=[{"rows": "mixer", "value": ["test_accuracy", "test_exact[32]"]} | NAME],
)


def settings(task=None, seed=0, **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": "conv(k=3) >> ff(16)", "d_model": 16},
            "task": {"name": "copy", **(task or {})},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 4,
                "epochs": 2,
                "steps_per_epoch": 6,
                **train,
            },
            "seed": seed,
        }
    )


def sorted_sequences(length, **task):
    made = read_task_settings({"name": "sort", **task})
    return draw_test_batch(get_task("sort"), made, length)


def digest(batch):
    return hashlib.sha256(b"".join(each.numpy().tobytes() for each in batch[:2])).hexdigest()[:8]


def test_the_test_sequences_are_the_same_for_good():
    assert digest(sorted_sequences(50)) == "0e3a3316"
    others = {
        digest(sorted_sequences(51)),
        digest(sorted_sequences(50, vocab=21)),
        digest(draw_test_batch(get_task("copy"), read_task_settings({"name": "copy", "vocab": 20}), 50)),
    }
    assert len(others | {digest(sorted_sequences(50))}) == 4
    assert len(sorted_sequences(50, test_lengths=[50], test_examples=7).inputs) == 7


def test_no_seed_of_a_training_is_that_of_a_test():
    drawn = set()

    class Recorded(torch.Generator):
        def manual_seed(self, seed):
            drawn.add(seed)
            return super().manual_seed(seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "Generator", Recorded)
        for name in registered_tasks():
            made = read_task_settings({"name": name, "test_lengths": [41, 99], "test_examples": 1})
            for length in made.test_lengths:
                draw_test_batch(get_task(name), made, length)
    assert len(drawn) == 2 * len(registered_tasks())
    purposes = ("data", "evaluation", "initialisation", "dropout")
    assert drawn.isdisjoint(derive_seed(seed, purpose) for seed in range(1000) for purpose in purposes)


def test_dev_sequences_are_spread_over_all_lengths():
    task = get_task("addition")
    lengths = task.spec.lengths(5, 15)
    assert list(lengths) == [5, 7, 9, 11, 13, 15]
    many = draw_dev_batches(task, lengths, count=20, vocab=3, seed=1)
    assert [tuple(batch.inputs.shape) for batch in many] == [
        (3, 5), (3, 7), (4, 9), (3, 11), (3, 13), (4, 15)
    ]  # fmt: skip
    few = draw_dev_batches(task, lengths, count=2, vocab=3, seed=1)
    assert [tuple(batch.inputs.shape) for batch in few] == [(1, 9), (1, 15)]


class Copier:
    """Copies sequences of up to ten symbols; of longer ones it misses the last symbol."""

    def __call__(self, inputs):
        missed = inputs.clone()
        if inputs.shape[1] > 10:
            missed[:, -1] = (missed[:, -1] + 1) % 100
        return 20.0 * torch.nn.functional.one_hot(missed, 100).float()


@pytest.mark.parametrize(
    "train", [{"lengths": (1, 12)}, {"curriculum": {"start": 5}}], ids=["drawn", "grown"]
)
def test_symbols_and_whole_sequences_are_scored_at_each_length_after_the_last_epoch(train, tmp_path):
    made = settings({"test_lengths": [10, 20, 40], "test_examples": 6, "dev_examples": 24}, **train)
    objective = build_objective(made, CPU, tmp_path)
    assert not [name for name in objective.evaluate(Copier(), last=False) if name.startswith("test")]
    found = objective.evaluate(Copier(), last=True)
    tested = {name: value for name, value in found.items() if name.startswith("test") and "loss" not in name}
    assert tested == pytest.approx(
        {
            "test_accuracy": (1 + 19 / 20 + 39 / 40) / 3,
            "test_exact": 1 / 3,
            "test_accuracy[10]": 1.0,
            "test_accuracy[20]": 19 / 20,
            "test_accuracy[40]": 39 / 40,
            "test_exact[10]": 1.0,
            "test_exact[20]": 0.0,
            "test_exact[40]": 0.0,
        }
    )
    assert found["test_loss[20]"] == pytest.approx(20 / 20, rel=1e-3)
    if "lengths" in train:  # two sequences at each of twelve lengths
        assert found["dev_accuracy"] == pytest.approx((sum(range(1, 13)) - 2) / sum(range(1, 13)))
        assert found["dev_exact"] == pytest.approx(10 / 12)
        assert "accuracy" not in found


def test_tests_and_more_dev_sequences_change_nothing_of_a_training():
    plain = settings(curriculum={"start": 5})
    tested = settings({"test_lengths": [9], "test_examples": 5, "dev_examples": 50}, curriculum={"start": 5})
    states = []
    for each in (plain, tested):
        training = Training.begin(each, CPU)
        while not training.finished:
            last = training.advance()
        states.append(training.state()["model"])
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert {"accuracy", "max_length", "test_accuracy[9]"} <= set(last)


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_a_training_at_drawn_lengths_resumes_bit_for_bit_from_within_an_epoch(device, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)  # else convolutions add in any order
    made = settings({"test_lengths": [20], "test_examples": 5, "dev_examples": 12}, lengths=(1, 12))
    whole = Training.begin(made, torch.device(device))
    expected = [whole.advance(), whole.advance()]
    states = []
    half = Training.begin(made, torch.device(device))
    half.advance(lambda: states.append(pickle.dumps(half.state())))
    rest = Training.begin(made, torch.device(device))
    rest.restore(pickle.loads(states[2]))
    found = [rest.advance(), rest.advance()]
    for each in (*expected, *found):
        each.pop("tokens_per_s")
    assert found == expected
    assert rest.work.flops == whole.work.flops


def test_the_operations_are_those_of_the_lengths_that_were_drawn():
    made = settings({"dev_examples": 12}, lengths=(1, 12))
    training, tokens = Training.begin(made, CPU), []
    loss = training.objective.loss
    training.objective.loss = lambda *given: (loss(*given), tokens.append(training.objective.batch))[0]
    training.advance()
    lengths = [batch.inputs.shape[1] for batch in tokens]
    assert len(set(lengths)) > 2
    assert set(lengths) <= set(range(1, 13))
    assert training.work.flops == 4 * sum(sequence_flops(made, tokens=length, past=0) for length in lengths)


def test_a_study_draws_its_accuracy_by_length(tmp_path):
    study = load_study(STUDY)
    store = Store(tmp_path)
    run_study(study, store, local=True)
    figure = open_study(study, tmp_path).curve("far")
    assert (figure.x.title, figure.x.log) == ("Length", True)
    assert figure.caption == "Accuracy on test sequences, as a share, by length"
    lines = figure.panels[0].content.lines
    assert [[(point.x, point.n) for point in line.points] for line in lines] == [
        [(8, 2), (16, 2), (32, 2)]
    ] * 2
    values = store.metrics([study.trials[0].id]).filter(name="test_accuracy[32]")["value"]
    assert len(values) == 1


class Guess(torch.nn.Module):
    """A model that copies a share of its inputs."""

    share = 1.0

    def forward(self, inputs):
        copied = torch.arange(inputs.numel()).view(inputs.shape) < round(self.share * inputs.numel())
        return torch.nn.functional.one_hot(torch.where(copied, inputs, (inputs + 1) % 4), 4)


def test_a_curriculum_grows_up_to_its_end_once_enough_is_right(tmp_path):
    made = settings({"vocab": 4}, batch_size=10, curriculum={"start": 5, "grow_at": 0.9, "end": 7})
    objective, model, found = build_objective(made, CPU, tmp_path), Guess(), []
    for share in (0.8, 0.9, 1.0, 0.5, 1.0, 1.0):
        model.share = share
        measured = objective.evaluate(model, last=False)
        found.append((measured["length"], measured["max_length"]))
        resumed = build_objective(made, CPU, tmp_path)
        resumed.restore(objective.state())
        objective = resumed
    assert found == [(5, 0), (5, 5), (6, 6), (7, 6), (7, 7), (7, 7)]
