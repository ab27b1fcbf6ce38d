"""Loss terms and callbacks of a plug-in, for tests."""

import threading

import numpy as np
import torch
from pydantic import Field

from activemem import Callback, LossTerm, register_callback, register_loss_term
from activemem.engine.core.process import StoppedMidway
from activemem.engine.trial.conformance import EPOCHS

SOURCE = "a test"


@register_loss_term(
    "activity_of_layers", title="Mean square of what layers add", source=SOURCE, higher_is_better=False
)
class Activity(LossTerm):
    match: str = Field(default="body.layers.*.part")
    """the modules with small outputs"""

    @property
    def watches(self):
        return (self.match,)

    def compute(self, step):
        squares = [output.square().mean() for _, output in step.activations]
        return torch.stack(squares).mean()


@register_loss_term("surprise", title="How far the loss is from what it was", source=SOURCE)
class Surprise(LossTerm):
    noise: float = Field(default=0.1, ge=0)
    """the scale of the noise"""

    def compute(self, step):
        found = step.outputs.float().square().mean()
        last = step.state.get("last", 0.0)
        step.state["last"] = float(found.detach())
        return (found - last).abs() * (1 + self.noise * torch.rand(()))


@register_loss_term("shown", title="Nothing", source=SOURCE)
class Shown(LossTerm):
    flaw: str = ""
    """the kind of flaw"""

    def compute(self, step):
        match self.flaw:
            case "shape":
                return step.outputs
            case "in place":
                return (step.outputs * step.targets.clamp_(0)[:, None]).mean()
            case "type":
                return 1.0
            case "nan":
                return step.outputs.sum() * float("nan")
            case "state":
                step.state["rule"] = lambda: 1
                return 0.0 * step.outputs.sum()
            case _:
                SEEN.append((step.inputs.shape, step.outputs.shape, step.targets.shape, step.step))
                return 0.0 * step.outputs.sum()


@register_loss_term("lists", title="Nothing", source=SOURCE)
class Lists(LossTerm):
    weights: list[float] = Field(default=[1.0])
    """a list of numbers"""
    couples: tuple[tuple[int, float], ...] = ((1, 1.0),)
    """a tuple of tuples"""
    names: dict[str, float] = Field(default={})
    """a table"""

    def compute(self, step):
        assert isinstance(self.weights, list)
        assert all(isinstance(each, tuple) for each in self.couples)
        return 0.0 * step.outputs.sum()


@register_callback(
    "drift",
    title="How far the weights have come",
    source=SOURCE,
    metrics={"drift": "Distance to the first weights", "drift_at_end": "The same after the last epoch"},
)
class Drift(Callback):
    flaw: str = ""
    """the kind of flaw"""

    def on_start(self, moment):
        moment.state["first"] = {name: each.detach() for name, each in moment.model.named_parameters()}

    def on_epoch_end(self, moment):
        match self.flaw:
            case "unknown":
                return {"drifting": 1.0}
            case "dtype":
                torch.set_default_dtype(torch.float64)
            case "float":
                return 5.0
            case "state":
                moment.state["rule"] = threading.Lock()
            case "numpy":
                moment.state["rule"] = np.float64(0.5)
            case "late" if moment.epoch == EPOCHS:
                moment.state["rule"] = threading.Lock()
            case "raise":
                raise RuntimeError("no more")
            case _:
                pass
        found = self.distance(moment) + 0.0 * float(torch.rand(()))
        with torch.no_grad():
            for each in moment.model.parameters():
                each.zero_()
        return {"drift": found}

    def on_end(self, moment):
        return {"drift_at_end": self.distance(moment)}

    @staticmethod
    def distance(moment):
        first = moment.state["first"]
        squares = [(each - first[name]).square().sum() for name, each in moment.model.named_parameters()]
        return float(torch.stack(squares).sum().sqrt())


@register_callback("count", title="How often it was called", source=SOURCE, metrics={"calls": "Calls"})
class Count(Callback):
    def on_epoch_end(self, moment):
        moment.state["calls"] = moment.state.get("calls", 0) + 1
        if moment.epoch in INTERRUPTED:
            INTERRUPTED.remove(moment.epoch)
            raise StoppedMidway
        return {"calls": moment.state["calls"]}


SEEN = []
"""The shapes of the tensors that `shown` received, and the step."""

INTERRUPTED = []
"""The epochs at whose end `count` is interrupted once."""
