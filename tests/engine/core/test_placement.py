"""States of plug-ins return to their device: checkpoints are loaded on the CPU."""

import io

import pytest
import torch

from activemem.engine.trial import Callbacks, Training, own_states, own_states_on, to_device, trial
from activemem.engine.trial import training as training_module

from ..training_parts import part_examples  # noqa: F401 -- registers them

CPU, META = torch.device("cpu"), torch.device("meta")
HERE = {"drift": {"generator": torch.arange(8), "rows": [(torch.ones(2), 1)]}, "empty": {}}
"""A state on the CPU."""


def read(saved):
    """Return a checkpoint as loaded, with all tensors on the CPU."""
    file = io.BytesIO()
    torch.save(to_device(saved, CPU), file)
    file.seek(0)
    return torch.load(file, map_location=CPU, weights_only=True)


def devices(state):
    return [state["drift"]["generator"].device, *(rows.device for rows, _ in state["drift"]["rows"])]


def test_tensors_of_the_cpu_stay_there_and_others_go_to_the_device():
    saved = own_states(HERE, META)
    found = own_states_on(read(saved) | {"states": {**HERE, "on it": {"x": torch.ones(3)}}}, META)
    assert devices(found) == [CPU, CPU]
    assert found["on it"]["x"].device == META
    assert found["drift"]["rows"][0][1] == 1
    assert devices(own_states_on(read(own_states(HERE, CPU)), META)) == [META, META]  # as of a CPU alone
    assert devices(own_states_on(read(saved), CPU)) == [CPU, CPU]


def test_tensors_that_are_only_on_the_device_are_saved_unchanged():
    states = {"drift": {"x": torch.ones(3, device=META)}}
    assert own_states(states, META) == {"states": states}
    assert own_states(HERE, CPU) == {"states": HERE}


def test_callbacks_keep_what_is_where():
    found = Callbacks((), 0, META)
    found.restore({"started": True, **own_states(HERE, META)})
    assert devices(found.state()["states"]) == [CPU, CPU]
    assert found.state()["on_cpu"] == own_states(HERE, META)["on_cpu"] != []


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ("callbacks", {"callbacks": [{"name": "drift"}]}),
        ("terms", {"loss_terms": [{"name": "surprise", "weight": 0.1}]}),
    ],
)
def test_a_training_leaves_it_to_them(part, asked, tmp_path, monkeypatch):
    training, moved = Training(trial(**asked), CPU, tmp_path), []
    state = training.state()
    monkeypatch.setattr(training_module, "to_device", lambda given, device: moved.append(given) or given)
    training.restore(state)
    assert part in state
    assert [part in each for each in moved] == [False]
