"""States of plug-ins go to the training's device: checkpoints are loaded on the CPU."""

import torch

from activemem.engine.trial.training_parts import Callbacks, to_device

META = torch.device("meta")
STATES = {"drift": {"generator": torch.arange(8), "rows": [(torch.ones(2), 1)]}, "empty": {}}


def test_all_tensors_of_a_state_are_moved():
    found = to_device(STATES, META)
    assert found["drift"]["generator"].device == found["drift"]["rows"][0][0].device == META
    assert (found["drift"]["rows"][0][1], found["empty"]) == (1, {})


def test_callbacks_resume_on_the_device_of_their_training():
    callbacks = Callbacks((), 0, META)
    callbacks.restore({"started": True, "states": STATES})
    assert callbacks.started
    assert callbacks.state()["states"]["drift"]["generator"].device == META
