"""Weights of which each replica has a part, and gathers them layer by layer (fully sharded data parallel)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from ...studies.catalog.tasks import ModelInterface
from ...studies.schema.settings import TrialSettings
from ...studies.schema.training import TrainSettings
from ..core.models import AnyModel, gathered_layers
from ..optimisers.weights import MakeWeights, Weights, draw_model
from .messages import Gathered

_FORWARD_METHODS = ("outputs_at", "nll", "nll_at", "forward_stream", "nll_stream")
"""How models are asked besides by `forward`; those that read a source have the first two."""


class ShardedWeights(Weights):
    """Of each weight, its gradient, what the optimiser keeps of it and its average: the part of this replica.

    Layers are gathered one after the other, as the step reaches them. States are those of the whole, so that
    a training goes on with any number of devices. `begin` has the other replicas gather, too; the one that
    evaluates gathers into `whole`, whose weights are there only meanwhile.
    """

    def __init__(
        self, model: AnyModel, train: TrainSettings, whole: AnyModel | None, begin: Callable[[Gathered], None]
    ) -> None:
        super().__init__(model, train)
        self._fuse_sgd(fused=False)
        self._whole, self._begin = whole, begin
        self._gathering = False

    @property
    def settled(self) -> bool:
        """Whether no gathering was left amid it."""
        return not self._gathering

    def with_room(self) -> AbstractContextManager[None]:
        """A context as it is: of what is kept of the weights, little is on one device."""
        return nullcontext()

    @contextmanager
    def evaluated(self) -> Iterator[AnyModel]:
        """A context with the whole model, on the device of this replica."""
        assert self._whole is not None, "another replica evaluates"
        own = dict(self._whole.named_parameters())
        try:
            with self._together("weights"):
                for name, weight in self._gather_evaluated():
                    own[name].data = weight
            self._whole.after_optimiser_step()
            yield self._whole
        finally:
            for weight in own.values():
                weight.data = torch.empty(0, device=weight.device)

    def named(self) -> Mapping[str, Tensor]:
        """Those of the model as it is evaluated now, by name, on the CPU."""
        with self.evaluated() as model:
            return {name: weight.to("cpu", copy=True) for name, weight in model.state_dict().items()}

    def state(self) -> dict[str, Any]:
        """All that the next step depends on, of all replicas, on the CPU."""
        with self._together("state"):
            self._fuse_sgd(fused=True)
            state = _whole_state(super().state(), keep=True)
            self._fuse_sgd(fused=False)
            return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state of the whole: take the part of this replica."""
        moved = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        optimizer = state["optimizer"]
        kept = {
            place: {name: _part(value, moved[place]) for name, value in values.items()}
            for place, values in optimizer["state"].items()
        }
        weights = self.model.state_dict()
        average = {name: _part(each, weights[name]) for name, each in state.get("average", {}).items()}
        super().restore(
            {
                "model": {name: _part(each, weights[name]) for name, each in state["model"].items()},
                "optimizer": {**optimizer, "state": kept},
                "average": average,
            }
        )
        self._fuse_sgd(fused=False)

    def fingerprint(self) -> float:
        """The same for all replicas, as each has other parts."""
        return 0.0

    def gather(self, what: Gathered) -> None:
        """Gather here what the replica that evaluates gathers, and keep nothing of it."""
        if what == "weights":
            for _ in self._gather_evaluated():
                pass
        else:
            _whole_state(super().state(), keep=False)

    def _fuse_sgd(self, *, fused: bool) -> None:
        """Have SGD in one pass, as on one device, or weight by weight, as parts of weights need it."""
        if isinstance(self.optimizer, torch.optim.SGD):
            for group in self.optimizer.param_groups:
                group["fused"] = fused

    def _gather_evaluated(self) -> Iterator[tuple[str, Tensor]]:
        """Each weight as it is evaluated, whole, by its name; all replicas do so together."""
        sharded = self._average.state() if self._average else dict(self.model.named_parameters())
        for name, weight in sharded.items():
            yield name, _whole(weight.detach())

    @contextmanager
    def _together(self, what: Gathered) -> Iterator[None]:
        """A context in which all replicas gather; one that is left amid it has lost the others."""
        self._gathering = True
        self._begin(what)
        yield
        self._gathering = False


def make_sharded(*, evaluates: bool, begin: Callable[[Gathered], None]) -> MakeWeights:
    """Makes the part of the weights that this replica has; all replicas make theirs together."""

    def make(settings: TrialSettings, interface: ModelInterface, device: torch.device) -> ShardedWeights:
        model = draw_model(settings, interface)
        whole = _emptied(copy.deepcopy(model), device) if evaluates else None
        return ShardedWeights(_shard(model, device), settings.train, whole, begin)

    return make


def _shard(model: AnyModel, device: torch.device) -> AnyModel:
    """The model with a part of each of its weights: layers are gathered one by one, the rest as one."""
    # outputs of layers are never changed in place, of which torch warns where they are views
    warnings.filterwarnings("ignore", message=".* returned a view tensor", category=UserWarning)
    mesh = init_device_mesh(device.type, (distributed.get_world_size(),))
    for layer in reversed(list(gathered_layers(model))):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # a plain sum: losses of parts are shares of the step's
            module.set_force_sum_reduction_for_comms(True)
    for name in _FORWARD_METHODS:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)
    return model


def _emptied(model: AnyModel, device: torch.device) -> AnyModel:
    """The model on a device, without its weights."""
    for weight in model.parameters():
        weight.data = torch.empty(0)
    return model.to(device)


def _whole(tensor: Tensor) -> Tensor:
    """A tensor of which each replica has a part."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _whole_state(state: Any, *, keep: bool) -> Any:  # noqa: ANN401 -- whatever a state is made of
    """The state of the whole, on the CPU; only gathered if it is not to be kept."""
    if isinstance(state, Tensor):
        whole = _whole(state)
        return whole.cpu() if keep else None
    if isinstance(state, dict):
        items = cast("dict[Any, Any]", state).items()
        return {name: _whole_state(each, keep=keep) for name, each in items}
    return state


def _part(value: Any, like: Tensor) -> Any:  # noqa: ANN401 -- numbers too are kept of weights
    """The part that this replica has of a tensor as large as a weight; anything else as it is."""
    if not isinstance(like, DTensor) or not isinstance(value, Tensor) or value.shape != like.shape:
        return value
    whole = value.to(like.device, like.dtype)
    found = distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)
    return torch.empty_like(like).copy_(found)  # what is found may be a view, by which the whole would stay
