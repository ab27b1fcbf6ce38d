"""Exceptions in plug-in code are reported with file and line before training."""

import math

import pytest

from activemem import PluginError, load_plugin, load_study, run_study
from activemem.engine import Machine
from activemem.storage import Store
from activemem.studies.planning.final_values import trial_values

from ...study_texts import study_text

METRIC = """
from activemem import register_metric

@register_metric("rehearsed_precision", title="Precision", higher_is_better=True, kinds=["tagging"])
class Precision:
    def __init__(self):
        self.right = self.found = 0

    def update(self, outputs, targets):
        found = outputs.argmax(-1) == 1
        self.found += int(found.sum())
        self.right += int((found & (targets == 1)).sum())

    def compute(self):
        return VALUE
"""
TERM = """
from activemem import LossTerm, register_loss_term

@register_loss_term("rehearsed_term", title="A term", source="own")
class Term(LossTerm):
    def compute(self, step):
        return step.no_such_field
"""
CALLBACK = """
from activemem import Callback, register_callback

@register_callback("rehearsed_callback", title="A callback", source="own")
class Ender(Callback):
    def on_end(self, moment):
        raise LookupError("no such layer")
"""


SCHEDULE = """
from math import sqrt
from activemem import PluginSchedule, register_schedule

@register_schedule("rehearsed_schedule", source="own")
class Root(PluginSchedule):
    def share(self, step, total_steps):
        return sqrt(0.5 - step / total_steps)
"""


TASK = """
import torch
from activemem import Examples, GeneratedTask, TaskSizes, register_task

@register_task("rehearsed_task", kind="tagging", summary="nothing", source="own")
class Nothing(GeneratedTask):
    @property
    def sizes(self):
        return TaskSizes(tokens=4, vocab=3)

    def draw(self, count, generator):
        inputs = torch.randint(3, (count, 4), generator=generator)
        return Examples(inputs, inputs)

    def losses(self, outputs, targets):
        torch.nn.functional.cross_entropy(outputs, targets, reduction="none")
"""


def study(task="sort", **train):
    lengths = {"curriculum": None, "epochs": 1, "steps_per_epoch": 2}
    if task == "sort":
        lengths["lengths"] = [2, 4]
    factors = {"mixer": ["conv(k=3)"], "task": [task], "seed": [0]}
    text = study_text(
        model={"d_model": 8}, task={"name": "{task}"}, train={**lengths, **train}, factors=factors
    )
    return load_study(text)


def load(folder, name, text):
    (folder / name).write_text(text)
    load_plugin(folder / name)


def reported(folder, loaded):
    store = Store(folder / "results")
    with pytest.raises(PluginError) as caught:
        run_study(loaded, store, Machine(data=folder), local=True)
    assert store.trials().is_empty()
    return str(caught.value)


def test_a_metric_that_is_undefined_for_some_outputs_is_reported_before_training(tmp_path, golden):
    load(tmp_path, "rehearsed.py", METRIC.replace("VALUE", "self.right / self.found"))
    told = reported(tmp_path, study())
    golden(told)


@pytest.mark.parametrize("value", ["None", "float('nan')"])
def test_none_and_not_a_number_say_that_a_metric_has_no_value(tmp_path, value):
    load(tmp_path, "rehearsed.py", METRIC.replace("VALUE", value))
    loaded, store = study(), Store(tmp_path / "results")
    run_study(loaded, store, Machine(data=tmp_path), local=True)
    (metrics,) = store.trials()["metrics"]
    assert math.isnan(next(each["value"] for each in metrics if each["name"] == "rehearsed_precision"))
    ids = [trial.id for trial in loaded.trials]
    found = trial_values(loaded.name, ids, store.trials(), "rehearsed_precision")
    assert found["status"].to_list() == ["none"]


def test_loss_terms_and_callbacks_are_tried_too(tmp_path):
    load(tmp_path, "term.py", TERM)
    load(tmp_path, "ender.py", CALLBACK)
    told = reported(tmp_path, study(loss_terms=[{"name": "rehearsed_term"}]))
    assert told.startswith("term.py:7: loss term 'rehearsed_term': AttributeError: ")
    told = reported(tmp_path, study(callbacks=[{"name": "rehearsed_callback"}]))
    assert told == "ender.py:7: callback 'rehearsed_callback': LookupError: no such layer"


def test_the_first_and_the_last_step_of_a_schedule_are_tried_too(tmp_path):
    load(tmp_path, "root.py", SCHEDULE)
    told = reported(tmp_path, study(schedule={"name": "rehearsed_schedule"}))
    assert told == "root.py:8: schedule 'rehearsed_schedule': ValueError: math domain error"


def test_losses_without_a_return_are_reported_before_training(tmp_path):
    load(tmp_path, "nothing.py", TASK)
    told = reported(tmp_path, study(task="rehearsed_task"))
    assert told.startswith(
        "nothing.py: task 'rehearsed_task': TypeError: losses: expected a tensor, got NoneType"
    )


def test_parts_of_a_script_train_in_this_process_and_not_on_ray(tmp_path):
    exec(compile(CALLBACK.replace("rehearsed", "inline"), "script.py", "exec"), {"__name__": "__main__"})
    inline = study(callbacks=[{"name": "inline_callback"}])
    with pytest.raises(
        PluginError, match=r"^Ray's workers do not run the notebook cell of callback inline_callback"
    ):
        run_study(inline, tmp_path / "results", Machine(data=tmp_path), local=False)
    with pytest.raises(PluginError, match="no such layer"):
        run_study(inline, tmp_path / "results", Machine(data=tmp_path))


BLOCK = """
import torch
from activemem import Block, Linear, register_block

@register_block("inline_narrow", parameters=())
class Narrow(Block):
    def __init__(self, *, width, causal):
        super().__init__()
        self.map = Linear(width, width)

    def forward(self, x, mask=None):
        return self.map(x)[..., :1]
"""


def test_every_option_of_a_search_is_checked_before_training(tmp_path):
    exec(compile(BLOCK, "script.py", "exec"), {"__name__": "__main__"})
    searched = load_study(
        study_text(
            model={"recipe": "{mixer} >> ff(8)"},
            task={"name": "sort"},
            train={"curriculum": None, "lengths": [2, 4], "epochs": 1, "steps_per_epoch": 2},
            factors={"seed": [0], "mixer": ["conv(k=3)", "inline_narrow", "gru"]},
            search={"sampler": "random", "trials": 2, "metric": "loss"},
        )
    )
    assert "gives an output of shape" in reported(tmp_path, searched)
    with pytest.raises(
        PluginError, match=r"^Ray's workers do not run the notebook cell of block inline_narrow"
    ):
        run_study(searched, tmp_path / "results", Machine(data=tmp_path), local=False)
