"""A model in training, with its optimiser, gradient clipping, and the average of its weights."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from ...blocks.core.initialisation import find_weights
from ...plugins import plugin_errors
from ...studies.catalog.optimisers import OPTIMIZERS
from ...studies.schema.settings import TrainSettings, TrialSettings
from ..core.models import AnyModel, build_model
from ..core.process import derive_seed, raise_if_stopped
from .build import Adam, build_optimizer

_log = logging.getLogger(__name__)


def compile_body(body: nn.Module) -> None:
    """Compile a model's body with torch. Where compiling fails, the body runs without it, with a warning."""
    torch.compiler.reset()  # a worker trains many trials: drop the programs of its earlier models
    # `Module.compile` sets this too, but offers no way back if compiling fails
    body._compiled_call_impl = _CompiledBody(body)


class _CompiledBody:
    """The compiled body of a model, or the body itself once torch could not compile it."""

    def __init__(self, body: nn.Module) -> None:
        self._eager = body._call_impl  # a public call would call the compiled body again
        self._compiled: Callable[..., Any] | None = torch.compile(self._eager)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 -- as any module's call
        if self._compiled is None:
            return self._eager(*args, **kwargs)
        # under no public name; only a compiled model loads the compiler
        from torch._dynamo.exc import TorchDynamoException  # noqa: PLC0415

        try:
            with _backward_compiled_now():
                return self._compiled(*args, **kwargs)
        except TorchDynamoException as error:
            raise_if_stopped()  # Ctrl-C also reaches compilers and torch's processes
            first = str(error).strip().partition("\n")[0]
            _log.warning("compile: the body runs without compilation, because torch fails: %s", first)
            self._compiled = None
        return self._eager(*args, **kwargs)


def _backward_compiled_now() -> AbstractContextManager[object]:
    """Return a context in which torch compiles a backward pass at once.

    Otherwise it could fail in the middle of a step. Without torch's setting for it, the context does nothing.
    """
    with suppress(ImportError):
        import torch._functorch.config as settings  # noqa: PLC0415 -- under no public name, so guarded

        if hasattr(settings, "force_non_lazy_backward_lowering"):
            return settings.patch(force_non_lazy_backward_lowering=True)
    return nullcontext()


@torch.no_grad()
def clip_gradients_per_map(model: nn.Module, norm: float) -> None:
    """Clip the gradient of each matrix to the norm `norm` (Sukhbaatar et al. 2019, section 5.1).

    Matrices that share a weight, such as queries, keys and values, are clipped one by one.
    """
    for _, gradient in _maps(model):
        # 1e-6 as in torch's clip_grad_norm_
        gradient.mul_((norm / (gradient.norm() + 1e-6)).clamp(max=1.0))


@torch.no_grad()
def take_clipped_step(optimizer: torch.optim.Optimizer, model: nn.Module, norm: float) -> None:
    """Take a step of the optimiser, scaled down for each matrix with a large gradient.

    If the gradient g of a matrix has a norm above `norm`, its step is multiplied by norm / ‖g‖. The optimiser
    sees the unscaled gradients (the program of Sukhbaatar et al. 2019). Matrices that share a weight are
    scaled one by one.
    """
    starts = [  # a map, its value before the step, and the step's factor
        (part, part.clone(), (norm / (gradient.norm() + 1e-10)).clamp(max=1.0))
        for part, gradient in _maps(model)
    ]
    optimizer.step()
    for part, start, share in starts:
        part.copy_(start.lerp_(part, share))


def _maps(model: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    for weight, found in find_weights(model).items():
        if weight.grad is not None:
            yield from zip(found.split_maps(weight), found.split_maps(weight.grad), strict=True)


def _gradient_norm(model: nn.Module) -> Tensor:
    """Return the norm of all gradients of a model."""
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    # sums of very many squares lose digits in single precision
    return torch.stack([each.detach().double().square().sum() for each in gradients]).sum().sqrt()


class Weights:
    """A model with its optimiser, the average of its weights, and the mean norm of its gradients.

    The average is a copy of the model, with the exponential moving average of its weights over the steps. Its
    bias to the start is corrected as in Adam (Kingma and Ba 2015, section 3): it has no share of the initial
    weights.
    """

    def __init__(self, model: AnyModel, train: TrainSettings) -> None:
        self.model, self._train = model, train
        self.optimizer = optimizer = build_optimizer(train.optimizer, model, train.groups)
        self._take_step = optimizer.take_step if isinstance(optimizer, Adam) else optimizer.step
        self._average = deepcopy(model).requires_grad_(requires_grad=False) if train.average else None
        if train.compile:
            for each in filter(None, (model, self._average)):
                compile_body(each.body)
        self.begin_epoch()

    def clear_gradients(self) -> None:
        """Remove the gradients of all weights, ten times as fast as `Optimizer.zero_grad` with its hooks."""
        for group in self.optimizer.param_groups:
            for weight in group["params"]:
                weight.grad = None

    @property
    def only_adam(self) -> bool:
        """Return whether `move` is a step of Adam and nothing else."""
        train = self._train
        clips = train.clip_norm, train.clip_tensor_norm, train.clip_step_norm
        return isinstance(self.optimizer, Adam) and clips == (None, None, None) and not train.measure

    def move(self) -> None:
        """Take one step of the optimiser. Gradients or steps are clipped as [train] sets it.

        Raise PluginError if the optimiser of a plug-in raises an exception.
        """
        train = self._train
        if train.measure:
            self._norms = self._norms + _gradient_norm(self.model)
        if train.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), train.clip_norm)
        if train.clip_tensor_norm is not None:
            clip_gradients_per_map(self.model, train.clip_tensor_norm)
        with plugin_errors(OPTIMIZERS.kind, train.optimizer.name, type(train.optimizer)):
            if train.clip_step_norm is None:
                self._take_step()
            else:
                take_clipped_step(self.optimizer, self.model, train.clip_step_norm)

    def begin_epoch(self) -> None:
        """Start to measure the gradients of an epoch, if [train] measure asks for it."""
        self._norms: Tensor | float = 0.0  # the sum over the steps, before clipping

    def metrics(self, steps: int) -> dict[str, float]:
        """Return what was measured of the gradients over the steps of an epoch."""
        return {"gradient_norm": float(self._norms) / steps} if self._train.measure else {}

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Update the average of the weights, and values cached in blocks. Steps count from 1."""
        self.model.after_optimiser_step()
        if self._average is not None and (decay := self._train.average) is not None:
            share = (1.0 - decay) / (1.0 - decay**step)  # of these weights; 1 at the first step
            for average, weight in zip(self._average.parameters(), self.model.parameters(), strict=True):
                average.lerp_(weight, share)

    @torch.no_grad()
    def evaluated(self) -> AnyModel:
        """Return the model for evaluation, with averaged weights if there is an average."""
        if self._average is None:
            return self.model
        for copied, buffer in zip(self._average.buffers(), self.model.buffers(), strict=True):
            copied.copy_(buffer)
        self._average.after_optimiser_step()
        return self._average

    def copied(self, weights: Mapping[str, Tensor]) -> AnyModel:
        """Return a copy of the evaluated model with these weights instead of its own."""
        model = deepcopy(self.evaluated())
        _load(model, weights)
        return model

    def named(self) -> Mapping[str, Tensor]:
        """Return the weights that evaluation uses, by name."""
        return self.evaluated().state_dict()

    def state(self) -> dict[str, Any]:
        """Return everything that the next step depends on."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        if self._average is not None:
            state["average"] = {name: weight.data for name, weight in self._average.named_parameters()}
        return state | ({"gradients": {"norms": self._norms}} if self._train.measure else {})

    @torch.no_grad()
    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a state that `state` returned, whose tensors may be on any device."""
        _load(self.model, state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self._average is not None:
            for name, average in self._average.named_parameters():
                average.copy_(state["average"][name])
        if self._train.measure:
            norms: Tensor | float = state["gradients"]["norms"]
            device = next(self.model.parameters()).device
            self._norms = norms.to(device) if isinstance(norms, Tensor) else norms


def _load(model: AnyModel, weights: Mapping[str, Tensor]) -> None:
    model.load_state_dict(weights)
    model.after_optimiser_step()


def make_weights(settings: TrialSettings, device: torch.device) -> Weights:
    """Build a trial's model and optimiser on a device. The initial weights are drawn on the CPU."""
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "initialisation"))
    return Weights(build_model(settings, generator).to(device), settings.train)
