"""A block that is not causal is detected before a causal task trains."""

import pytest
import torch

from activemem import Reach
from activemem.blocks.core import BLOCKS
from activemem.blocks.layers import Conv
from activemem.engine import LeakError
from activemem.engine.run import check_leaks, check_test_lengths
from activemem.grammar import configure, lookup
from activemem.grammar.vocabulary import SPECS
from activemem.studies.catalog.tasks import TaskError
from activemem.studies.schema import TrialSettings

from ...registry_entries import replace_entry


def asked(recipe, task="language_model"):
    text = {"corpus": "paradise-lost"} if task == "language_model" else {}
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 16},
            "task": {"name": task, **text},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 4,
                "epochs": 4,
                "steps_per_epoch": 5,
            },
        }
    )


@pytest.fixture
def leaky(monkeypatch):
    """Register a convolution that claims to be causal but is not."""

    class Leaky(Conv):
        @classmethod
        def build(cls, settings, context):
            from dataclasses import replace

            return super().build(settings, replace(context, config=configure(context.config, causal=False)))

    from dataclasses import replace

    spec = replace(lookup("conv"), name="leaky", reach=lambda settings, context: Reach(left=2, right=0))
    replace_entry(SPECS, "leaky", spec)
    replace_entry(BLOCKS, "leaky", Leaky)


def test_a_block_that_leaks_is_named(leaky, golden):
    with golden.raises(LeakError):
        check_leaks([asked("conv(k=3) >> ff(8)"), asked("2 * (leaky(k=3) + conv(k=2)) >> leaky(k=5)")])


def test_rounding_is_no_leak():
    check_leaks([asked("lstm >> ff(8)"), asked("gru + sa(heads=2, head_width=4)"), asked("delta >> gla")])


def test_a_block_that_cannot_run_in_double_precision_is_left_to_its_trial(monkeypatch):
    class Single(Conv):
        def forward(self, x, mask=None):
            if x.dtype == torch.float64:
                raise TypeError("expected single precision")
            return super().forward(x, mask)

    replace_entry(BLOCKS, "conv", Single)
    check_leaks([asked("conv(k=3) >> ff(8)")])


def test_tasks_that_see_everything_are_not_asked(leaky):
    check_leaks([asked("leaky(k=3)", task="not")])


def test_a_model_that_cannot_read_what_it_is_to_be_tested_on_is_named(monkeypatch, golden):
    class Short(Conv):
        def forward(self, x, mask=None):
            if x.shape[1] > 30:
                raise IndexError(f"expected at most 30 positions, got {x.shape[1]}")
            return super().forward(x, mask)

    replace_entry(BLOCKS, "conv", Short)
    tested = asked("conv(k=3) >> ff(8)", task="remember")
    tested = tested.model_copy(update={"task": tested.task.model_copy(update={"test_lengths": (10, 20)})})
    with golden.raises(TaskError):
        check_test_lengths([asked("conv(k=3)", task="not"), tested, asked("ff(8)", task="not")])
