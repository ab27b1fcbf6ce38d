"""A model that cannot read its test sequences is detected before a training."""

import pytest

from activemem import load_study, run_study
from activemem.blocks import BuildError
from activemem.blocks.core.block import BLOCKS
from activemem.blocks.layers.convolutions import Conv
from activemem.engine.run.preflight import check_test_lengths
from activemem.storage import Store
from activemem.studies.catalog.tasks import TaskError
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry
from ...study_texts import study_text


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


@pytest.mark.parametrize(
    ("widths", "remedy"),
    [
        ([8, 1_000_000, 1_048_576], ', or train only the others: [study] limits = { parameters = "< '),
        ([1_048_576], ""),
    ],
)
def test_models_that_the_memory_cannot_hold_are_named_before_anything_trains(widths, remedy, tmp_path):
    text = study_text(
        model={"recipe": "2000 * ff({width})", "d_model": 4096},
        task={"name": "reverse"},
        factors={"width": widths, "seed": [0, 1]},
    )
    with pytest.raises(BuildError) as error:
        run_study(load_study(text), tmp_path, local=False)
    large = [width for width in widths if width > 8]
    heading, *models, advice = str(error.value).splitlines()
    assert heading.startswith("weights and gradients of these models exceed this machine's ")
    assert [str(width) in line for width, line in zip(large, models, strict=True)] == [True] * len(large)
    assert advice.startswith(f"choose smaller models{remedy}")
    assert not Store(tmp_path).trials().height
