"""Trials of tasks with one example shape train together as they do alone; others do not."""

import pytest
import torch
from torch.nn import functional

from activemem import Examples, GeneratedTask, TaskSizes, register_task
from activemem.engine.packs import PackError, StackedSteps, alone_reason, form_of, stacking_fault
from activemem.engine.trial import Training
from activemem.studies.catalog.tasks import IGNORED, TASKS, TaskError
from activemem.studies.schema import TrialSettings

from ...quick_cases import one_in

CPU = torch.device("cpu")
TASKS_OF_ONE_SHAPE = {
    "mqar": {"vocab": 32, "length": 16, "pairs": 3, "test_examples": 20},
    "word_problem": {"lengths": [7, 7], "test_examples": 20},
    "parity": {"lengths": [9, 9], "test_examples": 20},
    "needle": {"lengths": [30, 30], "test_examples": 20},
    "mad": {"length": 16, "train_examples": 50, "test_examples": 20},
}


class Shifted(GeneratedTask):
    """A task in which the target is the previous symbol, with its own loss."""

    fault: str = ""
    """the kind of fault in generated examples"""

    @property
    def sizes(self):
        return TaskSizes(tokens=5, vocab=4)

    @property
    def has_one_shape(self):
        return True

    def draw(self, count, generator):
        inputs = torch.randint(4, (count, 5), generator=generator)
        targets = inputs.roll(1, 1)
        targets[:, 0] = IGNORED
        if self.fault == "scored":
            targets[:, 1] = targets[:, 1].where(inputs[:, 0] > 1, IGNORED)
        return Examples(inputs, targets, torch.full((count,), 5) if self.fault == "lengths" else None)

    def losses(self, outputs, targets):
        return 2 * functional.cross_entropy(outputs, targets, reduction="none", label_smoothing=0.1)


class Sums(GeneratedTask):
    """A task in which the target is the sum of two columns' first numbers."""

    @property
    def sizes(self):
        return TaskSizes(tokens=3, columns=2, targets=1)

    @property
    def has_one_shape(self):
        return True

    def draw(self, count, generator):
        inputs = torch.rand(count, 3, 2, generator=generator)
        return Examples(inputs, inputs[:, 0].sum(1, keepdim=True))


@pytest.fixture(autouse=True)
def _tasks():
    """Register two tasks during a test."""
    for name, kind, task in (("shifted", "causal_tagging", Shifted), ("sums", "regression", Sums)):
        register_task(name, kind=kind, summary="something", source="here")(task)
    yield
    for name in ("shifted", "sums"):
        TASKS.unregister(name)


def settings(task, recipe="2 * (sa(heads=2) >> ff(16))", seed=0, **keys):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8, "dropout": 0.1},
            "task": {"name": task, "dev_examples": 20, **keys},
            "train": {
                "optimizer": {"name": "sgd", "lr": 0.1 / (1 + seed)},
                "batch_size": 4,
                "epochs": 2,
                "steps_per_epoch": 3,
            },
            "seed": seed,
        }
    )


def assert_trained_as_alone(task, recipe, **keys):
    """Assert that an epoch in a pack, and a later one alone, equal separate training."""
    alone, packed = (
        [Training.begin(settings(task, recipe, seed, **keys), CPU) for seed in range(3)] for _ in range(2)
    )
    expected = [training.advance() for training in alone]
    with StackedSteps(packed) as stacked:
        for _ in range(3):
            stacked.step()
    found = [training.advance() for training in packed]
    assert [training.packed_steps for training in packed] == [3, 3, 3]
    for one, other in zip(
        [*expected, *(each.advance() for each in alone)],
        [*found, *(each.advance() for each in packed)],
        strict=True,
    ):
        untimed = {name: value for name, value in other.items() if name != "tokens_per_s"}
        assert untimed == pytest.approx({name: one[name] for name in untimed}, rel=5e-5)
    for one, other in zip(alone, packed, strict=True):
        for name, weight in one.weights().items():
            torch.testing.assert_close(other.weights()[name], weight, atol=2e-5, rtol=0.0)
        assert torch.equal(other.state()["noise"], one.state()["noise"])
        assert torch.equal(other.state()["objective"]["data"], one.state()["objective"]["data"])


@pytest.mark.parametrize(
    ("task", "recipe"),
    [
        *one_in(2, ((task, "2 * (sa(heads=2) >> ff(16))") for task in TASKS_OF_ONE_SHAPE)),
        ("parity", "conv(k=3) + lstm"),
    ],
)
def test_trials_of_one_shape_train_together_as_separately(task, recipe):
    assert_trained_as_alone(task, recipe, **TASKS_OF_ONE_SHAPE[task])


@pytest.mark.parametrize("recipe", ["2 * (sa(heads=2) >> ff(16))", "conv(k=3) + lstm"])
def test_a_task_with_losses_of_its_own_trains_together_as_separately(recipe):
    assert_trained_as_alone("shifted", recipe)


@pytest.mark.parametrize("recipe", ["sa(heads=2) >> mean_pool", "gru >> mean_pool"])
def test_regression_trains_together_as_separately(recipe):
    assert_trained_as_alone("sums", recipe)


@pytest.mark.heavy
def test_models_with_a_bottleneck_train_together_as_separately():
    assert_trained_as_alone("mad", "sa(heads=2)", problem="compression", length=12, train_examples=50)


def test_trials_of_one_form_have_one_task():
    forms = {form_of(settings("mqar", seed=seed, vocab=32, length=16)) for seed in range(3)}
    assert len(forms) == 1
    for other in ({"vocab": 64}, {"pairs": 3}, {"length": 20}):
        assert form_of(settings("mqar", **{"vocab": 32, "length": 16} | other)) not in forms


@pytest.mark.parametrize(
    ("task", "keys"),
    [
        ("mqar", {"vocab": 32, "mixture": [[16, 3, 1], [20, 3, 1]]}),
        ("word_problem", {"lengths": [6, 7]}),
        ("chomsky_hierarchy", {"lengths": [6, 6], "problem": "binary_addition"}),
    ],
)
def test_trials_without_a_common_shape_train_separately(task, keys, golden):
    asked = settings(task, **keys)
    assert form_of(asked) is None
    golden(alone_reason(asked))


def test_a_task_that_says_so_and_does_not_is_refused(golden):
    made = [Training.begin(settings("shifted", seed=seed, fault="scored"), CPU) for seed in range(3)]
    assert stacking_fault(made[0].model) is None
    with golden.raises(PackError), StackedSteps(made) as stacked:
        for _ in range(10):
            stacked.step()
    made = [Training.begin(settings("shifted", seed=seed, fault="lengths"), CPU) for seed in range(3)]
    with (
        golden.raises(TaskError),
        StackedSteps(made) as stacked,
    ):
        stacked.step()
