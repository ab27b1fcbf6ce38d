"""Tasks that generate examples in their settings class, as in plug-ins."""

import math
import pickle

import pytest
import torch
from pydantic import Field
from torch.nn import functional

from activemem import (
    IGNORED,
    Block,
    Examples,
    GeneratedTask,
    PluginError,
    TaskSizes,
    register_metric,
    register_task,
)
from activemem.blocks.core.block import BLOCKS
from activemem.engine import LeakError
from activemem.engine.tasks.generated import draw_test_set
from activemem.engine.trial.training import Training
from activemem.studies import METRICS
from activemem.studies.catalog.tasks import TASKS, TaskError, read_task_settings
from activemem.studies.planning.final_values import guessing_losses
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry

CPU = torch.device("cpu")
TIMED = "tokens_per_s"
SCORED = ("loss", "accuracy", "exact", "scaled_accuracy")


class Previous(GeneratedTask):
    """A task in which the target is the previous symbol, with sequences of several lengths."""

    vocab: int = Field(default=7, ge=2)
    """the vocabulary size"""
    fault: str = ""
    """the kind of fault in generated examples"""

    @property
    def sizes(self):
        return TaskSizes(tokens=9, vocab=self.vocab)

    @property
    def chance(self):
        return 1 / self.vocab

    def draw(self, count, generator):
        inputs = torch.randint(self.vocab, (count, 9), generator=generator)
        lengths = torch.randint(4, 10, (count,), generator=generator)
        places = torch.arange(9)
        targets = torch.where((places % 2 == 1) & (places < lengths[:, None]), inputs.roll(1, 1), IGNORED)
        match self.fault:
            case "vocab":
                inputs[0, 0], targets[0, 1] = self.vocab, self.vocab
            case "type":
                inputs, lengths = inputs.float(), lengths[1:]
            case "padding":
                targets[:, 8], lengths[:] = 0, 8
            case "none":
                targets[:] = IGNORED
            case _:
                pass
        return Examples(inputs, targets, lengths)

    def test_sets(self):
        return {
            "one": lambda generator: self.draw(30, generator),
            "2": lambda generator: self.draw(10, generator),
        }


class Sums(GeneratedTask):
    """A task in which the target is the sum of two columns' first numbers."""

    @property
    def sizes(self):
        return TaskSizes(tokens=3, columns=2, targets=1)

    def draw(self, count, generator):
        inputs = torch.rand(count, 3, 2, generator=generator)
        return Examples(inputs, inputs[:, 0].sum(1, keepdim=True))


class Focal(Previous):
    """The same task with the focal loss."""

    sharp: float = Field(default=2.0, ge=0)
    """the exponent of the focal loss; 0 is the cross-entropy"""

    def losses(self, outputs, targets):
        match self.fault:
            case "losses":
                return outputs
            case "NoneType":
                return None
            case "float":
                return 1.0
            case _:
                pass
        lost = functional.cross_entropy(outputs, targets, reduction="none")
        return (1 - (-lost).exp()) ** self.sharp * lost


class LooksAhead(Block):
    """A model that returns the next input, which is not causal."""

    @classmethod
    def build(cls, settings, context):
        return cls()

    def forward(self, x, mask=None):
        return functional.pad(x, (0, 0, 0, 1))[:, 1:]


@pytest.fixture(autouse=True)
def _tasks():
    """Register four tasks during a test."""
    about = {"summary": "something", "source": "here"}
    for name, kind, task in (
        ("previous", "causal_tagging", Previous),
        ("previous_of_all", "tagging", Previous),
        ("sums", "regression", Sums),
        ("focal", "causal_tagging", Focal),
    ):
        register_task(name, kind=kind, **about)(task)
    yield
    for name in ("previous", "previous_of_all", "sums", "focal"):
        TASKS.unregister(name)


def training(task, recipe="conv(k=3) >> ff(16)", seed=0, **train):
    settings = {
        "model": {"recipe": recipe, "d_model": 16, "dropout": 0.0},
        "task": {"dev_examples": 50, **task},
        "train": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_size": 8,
            "epochs": 3,
            "steps_per_epoch": 4,
            **train,
        },
        "seed": seed,
    }
    return Training.begin(TrialSettings.model_validate(settings), CPU)


def untimed(metrics):
    return {name: value for name, value in metrics.items() if name != TIMED}


KINDS = {
    "previous": "conv(k=3) >> ff(16)",
    "focal": "conv(k=3) >> ff(16)",
    "previous_of_all": "conv(k=3) >> ff(16)",
    "sums": "ff(16) >> mean_pool",
}


@pytest.mark.parametrize("name", KINDS)
def test_a_restored_state_resumes_bit_for_bit(name):
    whole, half, rest = (training({"name": name}, KINDS[name], seed=3) for _ in range(3))
    history = [untimed(whole.advance()) for _ in range(2)]
    first = untimed(half.advance())
    rest.restore(pickle.loads(pickle.dumps(half.state())))
    assert [first, untimed(rest.advance())] == history


@pytest.mark.parametrize("number", [4, 3])  # of as many examples, or not
@pytest.mark.parametrize("name", KINDS)
def test_a_batch_in_parts_gives_the_same_losses(name, number):
    whole, parts = (training({"name": name}, KINDS[name], accumulate=count) for count in (1, number))
    for _ in range(2):
        one, other = whole.advance(), parts.advance()
        for metric in one.keys() - {TIMED}:
            assert other[metric] == pytest.approx(one[metric], rel=1e-4)


def test_all_that_is_scored_counts_once_and_nothing_else():
    trained = training({"name": "previous"}, epochs=1)
    found = trained.advance()
    loss, right, count, exact = 0.0, 0, 0, 0
    for name in ("one", "2"):
        inputs, targets, lengths = draw_test_set(Previous(name="previous"), name)
        with torch.no_grad():
            scores = trained.model(inputs, lengths).log_softmax(-1)
        scored = targets != IGNORED
        of_set = (scores.argmax(-1) == targets)[scored]
        faultless = int(((scores.argmax(-1) == targets) | ~scored).all(1).sum())
        assert found[f"test_exact[{name}]"] == pytest.approx(faultless / len(inputs))
        assert found[f"test_accuracy[{name}]"] == pytest.approx(float(of_set.double().mean()))
        loss -= float(scores[scored].gather(1, targets[scored][:, None]).double().sum())
        right, count = right + int(of_set.sum()), count + int(scored.sum())
        exact += faultless
    assert found["test_exact"] == exact / 40
    assert found["test_scaled_accuracy"] == pytest.approx((right / count - 1 / 7) / (6 / 7))
    assert found["test_accuracy"] == pytest.approx(right / count)
    assert found["test_loss"] == pytest.approx(loss / count)


def test_each_test_set_of_recall_has_the_guess_of_its_own_pairs():
    task = {"name": "mqar", "vocab": 64, "length": 16, "pairs": 2, "tests": [[16, 2], [32, 4]]}
    found = training(task, epochs=1).advance()
    guesses = {"dev_": 1 / 2, "test_": 2 / 6, "test_[16-2]": 1 / 2, "test_[32-4]": 1 / 4}
    for name, guess in guesses.items():
        accuracy, scaled = (found[name.replace("_", f"_{each}")] for each in ("accuracy", "scaled_accuracy"))
        assert scaled == pytest.approx((accuracy - guess) / (1 - guess))


def test_the_guess_of_a_mixture_counts_the_queries_of_each_shape():
    mixture = [[16, 2, 3], [32, 8, 1]]  # of 4 sequences with 14 queries, a guess gets 4 right
    task = read_task_settings({"name": "mqar", "vocab": 64, "mixture": mixture})
    assert task.chance == pytest.approx(4 / 14)
    assert task.chance_in_test() == pytest.approx(2 / 10)  # the test sets have equally many sequences


def test_a_task_is_learnt_and_only_the_last_epoch_has_the_test_split():
    trained = training({"name": "previous"}, steps_per_epoch=60, epochs=2)
    first, last = trained.advance(), trained.advance()
    assert "test_accuracy" not in first
    assert last["test_accuracy"] > 0.9
    assert set(last) == {
        "loss",
        *(f"dev_{metric}" for metric in SCORED),
        *(f"test_{metric}" for metric in SCORED),
        *(f"test_{metric}[{name}]" for metric in SCORED for name in ("one", "2")),
        TIMED,
    }


def test_numbers_are_scored_by_their_squared_error():
    found = training({"name": "sums"}, KINDS["sums"], steps_per_epoch=60, epochs=2)
    first, last = found.advance(), found.advance()
    assert last["dev_loss"] < first["dev_loss"] < 0.5
    assert set(last) == {"loss", "dev_loss", TIMED}


def test_registered_metrics_see_what_is_scored():
    class Share:
        def __init__(self):
            self.right = self.count = 0

        def update(self, outputs, targets):
            self.right += int((outputs.argmax(-1) == targets).sum())
            self.count += len(targets)

        def compute(self):
            return self.right / self.count

    register_metric("same", title="The same", kinds=["causal_tagging", "tagging"])(Share)
    try:
        causal = training({"name": "previous"}, epochs=1).advance()
        plain = training({"name": "previous_of_all"}, epochs=1).advance()
    finally:
        for name in ("same", "dev_same", "test_same"):
            METRICS.unregister(name)
    assert (causal["dev_same"], causal["test_same"]) == (causal["dev_accuracy"], causal["test_accuracy"])
    assert plain["same"] == plain["dev_accuracy"]


def test_a_model_that_sees_later_inputs_fails(monkeypatch, golden):
    replace_entry(BLOCKS, "conv", LooksAhead)
    training({"name": "previous_of_all"}).advance()
    with golden.raises(LeakError):
        training({"name": "previous"}).advance()


@pytest.mark.parametrize(
    "fault",
    [
        "vocab",
        "type",
        "padding",
        "none",
    ],
)
def test_invalid_examples_of_a_task_are_reported_before_a_model_sees_them(fault, golden):
    with golden.raises(TaskError):
        training({"name": "previous", "fault": fault}).advance()


def test_a_loss_of_the_tasks_own_is_what_is_learnt_and_reported():
    plain, same, sharp = (
        training({"name": name, **keys})
        for name, keys in (("previous", {}), ("focal", {"sharp": 0.0}), ("focal", {}))
    )
    names = ("loss", "dev_loss", "dev_accuracy")  # each task has test sets of its own
    histories = [
        [{name: found[name] for name in names} for found in [each.advance() for _ in range(3)]]
        for each in (plain, same, sharp)
    ]
    for one, other in zip(histories[0], histories[1], strict=True):
        assert one == pytest.approx(other, rel=1e-5)  # torch's cross-entropy has other last digits
    for one, other in zip(histories[0], histories[2], strict=True):
        assert 0 < other["loss"] < one["loss"]
        assert 0 < other["dev_loss"] < one["dev_loss"]
    assert not torch.equal(*(each.weights()["output.weight"] for each in (plain, sharp)))


def test_losses_that_are_not_one_of_each_target_are_refused(golden):
    with golden.raises(TaskError):
        training({"name": "focal", "fault": "losses"}).advance()


@pytest.mark.parametrize("fault", ["NoneType", "float"])
def test_losses_that_are_no_tensor_are_refused(fault):
    with pytest.raises(PluginError, match=f"test_generated.py: task 'focal': .* got {fault}; a task"):
        training({"name": "focal", "fault": fault}).advance()


def test_a_loss_of_the_tasks_own_has_no_bound_beyond_which_it_diverged():
    tasks = {name: read_task_settings({"name": name}) for name in ("previous", "focal")}
    assert guessing_losses(tasks) == {"previous": math.log(7)}
