"""A model that cannot read its test sequences is detected before a training."""

from activemem.blocks.core.block import BLOCKS
from activemem.blocks.layers.convolutions import Conv
from activemem.engine.run.preflight import check_test_lengths
from activemem.studies.catalog.tasks import TaskError
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry


def asked(recipe, task):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 16},
            "task": {"name": task},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 4,
                "epochs": 4,
                "steps_per_epoch": 5,
            },
        }
    )


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
