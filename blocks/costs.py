"""Functions that measure the costs of modules: parameters, FLOPs and memory.

They run the modules on torch's meta device, which computes shapes without allocating memory. The stated reach
of a plug-in's block is checked against its module as well.

Each function returns plain numbers by name, so that they can be stored (`grammar.analysis.measured_costs`).
"""

from __future__ import annotations

import math
import sys
import weakref
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import flop_registry

from ..grammar.model_config import ModelConfig, configure
from ..grammar.nodes import BlockNode, Node
from ..grammar.positions import RandomisedPairs
from ..grammar.recipe import Recipe, parse
from ..grammar.vocabulary.spec import CostContext, Role, Spec, block_code, spec_of
from ..plugins import forget_at_unload, plugin_errors
from .core.block import BLOCKS, Block, BuildError, Context, StreamChunk, StreamState, build_block
from .core.operations import avoid_compiler_import, kernels_left_out
from .core.residual_stack import SideInputs, build_norm
from .layers.recurrent import LSTM, Recurrent
from .layers.window_attention import WindowedBlock
from .models.model import Model, TransductionModel, build_on_meta
from .transducers.seq2seq import RecurrentDecoder, Seq2Seq

avoid_compiler_import()

Numbers = dict[str, int]

_SHORT_LENGTHS = (4, 5, 6)
"""The lengths at which a block with a long loop over positions is measured.

Three lengths determine the FLOPs at all lengths, because FLOPs are quadratic in the length.
"""

_LONG_LENGTHS = (32, 64, 96)
"""The lengths at which a model with a long loop over positions is measured."""

_MAX_LAYOUTS = 50_000
"""The maximum number of cached result shapes."""

_INPUTS = ("embedding", "source", "target")
"""The modules of a model that read its inputs."""


def measure_parameters(node: BlockNode, config: ModelConfig) -> Numbers:
    """Count the parameters of a block.

    The count is under the name "parameters". Parameters that several blocks share are counted separately, as
    "shared KEY".
    """
    return _count_parameters(*_build(node, config))


def measure_block(node: BlockNode, config: ModelConfig, *, length: int, past: int) -> Numbers:
    """Measure the parameters and FLOPs of a block.

    Their names are "parameters" and "flops". The FLOPs are for `length` positions after `past` others. In a
    stream only new positions count, not recomputed past ones. Raise PluginError for a plug-in's block that
    `check_plugin_block` refuses.
    """
    block, context = _build(node, config)
    spec, surroundings = spec_of(node.name), CostContext(config=config, length=length)
    sees = spec.reach(spec.settings(node), surroundings).left
    if type(block).forward_with_past is Block.forward_with_past or math.isinf(sees):
        past = 0
    past = min(past, int(sees)) if past else 0
    measure = partial(_block_flops, spec, block, past=past, width=config.settings.d_model)
    loops = any(isinstance(each, Block) and each.loops_over_positions for each in block.modules())
    lengths = _SHORT_LENGTHS if loops else ()
    found = _count_parameters(block, context) | _at_length(measure, length, lengths)
    if block_code(node.name) is not None:
        from .testing.plugin_checks import check_plugin_block  # noqa: PLC0415 -- only a plug-in's block needs it

        check_plugin_block(node, causal=config.interface.causal, width=config.settings.d_model)
    return found


def measure_cache(node: BlockNode, config: ModelConfig) -> Numbers:
    """Measure how many numbers a layer of another package caches during generation.

    "state" is the count of numbers for each past token, "window" the count that does not grow. A layer
    without a cache keeps its inputs.
    """
    block, (short, long) = _build(node, config)[0], _LONG_LENGTHS[-2:]
    count = getattr(block, "count_cached", None)  # of a plug-in's block
    try:
        if count is None:
            raise NotImplementedError
        with torch.no_grad(), torch.device("meta"), kernels_left_out():
            few, many = (count(length) for length in (short, long))
    except Exception:  # noqa: BLE001 -- another package may raise anything
        return {"state": config.settings.d_model, "window": 0}
    state = (many - few) // (long - short)
    return {"state": state, "window": few - short * state}


def measure_frame(_root: None, config: ModelConfig, *, length: int, scored: int) -> Numbers:
    """Measure the parameters and FLOPs of the parts around a model's body, such as the embedding.

    Their names are "parameters PART" and "flops PART". Outputs are computed at `scored` positions. With a
    clustered vocabulary all targets are assumed to be in the first cluster, which has most tokens.
    """
    if isinstance(
        config.settings.position_kind, RandomisedPairs
    ):  # they need a mixer, and add nothing to the frame
        config = configure(config, position="none")
    with torch.device("meta"):
        model = build_on_meta(parse("ff(1)"), config)
        assert isinstance(model, Model)
        hidden = torch.zeros(1, length, config.settings.d_model)
        found = {
            "parameters norm": _numbers(build_norm(config)),
            "flops input": _flops(lambda: model.embedding(_inputs(config, 1, length))),
            "flops decoder": _flops(lambda: model.decoder and model.decoder(hidden, None)),
            "flops output": _flops(lambda: _loss_of_hidden(model, hidden[:, :1].expand(1, scored, -1))),
        }
    parts = {"input": model.embedding, "positions": model.positions, "decoder": model.decoder}
    parts |= {"final norm": model.norm}
    counted = {f"parameters {name}": _numbers(part) for name, part in parts.items()}
    rest = _numbers(model) - _numbers(model.body) - sum(counted.values())
    return _without_zeros(counted | found | {"parameters output": rest})


def measure_transducer(root: Node, config: ModelConfig, *, length: int, scored: int) -> Numbers:
    """Measure the parameters and FLOPs of each module of a model with source and target.

    Their names are "parameters MODULE" and "flops MODULE". A long loop over positions is measured at shorter
    lengths.
    """
    model = _build_model(root, config)
    assert isinstance(model, TransductionModel)
    parts = list(model.body.children())
    if not isinstance(model.body, Seq2Seq) or all(map(_is_recurrent, parts)):
        # outputs at only some positions are not a parabola at so short lengths
        lengths = _SHORT_LENGTHS if scored == length else _LONG_LENGTHS
    else:
        lengths = _LONG_LENGTHS if any(map(_is_recurrent, parts)) else ()
    found: Counter[str] = Counter()
    for name, module in model.named_modules():
        found[f"parameters {_part_of(name)}"] += sum(
            each.numel() for each in module.parameters(recurse=False)
        )

    def flops(at: int) -> Numbers:
        once, counted = -(-scored * at // length), Counter[str]()
        small, large = (_flops_by_module(model, batch, at, once) for batch in (2, 3))
        for name, count in large.items():
            counted[f"flops {_part_of(name)}"] += count - small[name]
        return counted

    return _without_zeros({**found, **_at_length(flops, length, lengths)})


def _part_of(module: str) -> str:
    """Return the first names of a module, such as `body.decoder.block`, for which an analysis has a part."""
    return ".".join(module.partition(":")[0].split(".")[:3])


def _without_zeros(found: Numbers) -> Numbers:
    return {name: count for name, count in found.items() if count}


def measure_step(
    root: Node, config: ModelConfig, *, length: int, past: int, scored: int, batch: int
) -> Numbers:
    """Return the bytes of memory of a training step.

    "kept MODULE" is what a module stores for the backward pass. "peak" is the most that the step allocates at
    once, without weights and gradients.
    """
    model = _build_model(root, config)

    def measure(at: int) -> Numbers:
        return _run_step(model, batch=batch, length=at, past=past, scored=-(-scored * at // length))

    return _at_length(measure, length, _LONG_LENGTHS if _trains_in_loops(model) else ())


def _run_step(
    model: Model | TransductionModel, *, batch: int, length: int, past: int, scored: int
) -> Numbers:
    memory, gradients = _StepMemory(model), 4 * _numbers(model)
    with torch.device("meta"), _MetaMode(counts_flops=False), kernels_left_out():
        with _FlopCounter():  # the state exists before the step, so it is made before memory is counted
            state = _stream_state(model, batch, past)
        with memory, _plugin_errors_of(model):
            with (
                _entered_modules(model, lambda _name: None) as memory.names,
                saved_tensors_hooks(memory.keep, lambda tensor: tensor),
            ):
                loss = _loss(model, batch, length, scored, state).mean()
            found = {f"kept {name}": count for name, count in memory.kept().items()}
            forward, memory.peak = memory.peak, memory.live
            loss.backward()
    model.zero_grad()
    return {**found, "peak": max(forward, memory.peak - gradients)}


@contextmanager
def _plugin_errors_of(model: nn.Module) -> Iterator[None]:
    """Convert an exception in the code of a plug-in's block to a PluginError that names the block."""
    try:
        yield
    except Exception as error:
        files = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)}
        for name, cls in BLOCKS.items():
            if getattr(sys.modules.get(cls.__module__), "__file__", None) in files and any(
                isinstance(each, cls) for each in model.modules()
            ):
                with plugin_errors("block", name, cls):
                    raise
        raise


def _stream_state(model: nn.Module, batch: int, past: int) -> StreamState | None:
    """Return the state of a stream after `past` positions.

    One position is enough if the states then already have their final size.
    """
    if not past or not isinstance(model, Model):
        return None
    blocks = [each for each in model.modules() if isinstance(each, Block)]
    full = past >= max(each.context_length or 0 for each in blocks) or model.config.settings.zero_past
    length = 1 if full else past
    with torch.no_grad():
        x, signal = model._embed(_inputs(model.config, batch, length), 0)
        chunk = StreamChunk((), zero_past=full)
        model.body(x, SideInputs(signal=signal, chunk=chunk))
    return StreamState(length, chunk.next_states())


def _loss(
    model: Model | TransductionModel, batch: int, length: int, scored: int, state: StreamState | None
) -> Tensor:
    config, places = model.config, torch.zeros(batch * scored, dtype=torch.int64)
    targets = torch.zeros(batch * scored, dtype=torch.int64)
    inputs = _inputs(config, batch, length)
    if isinstance(model, TransductionModel):
        source, target = inputs, torch.zeros(batch, length, dtype=torch.int64)
        return functional.cross_entropy(model.outputs_at(source, target, places), targets, reduction="none")
    if state is not None:
        hidden, _ = model._hidden_stream(inputs, state)
        return _loss_of_hidden(model, hidden)
    hidden = model._hidden(inputs, None)
    if not model.pooled and scored < length:
        hidden = hidden.flatten(0, 1).index_select(0, places)
    return _loss_of_hidden(model, hidden)


def _loss_of_hidden(model: Model, hidden: Tensor) -> Tensor:
    """Return the squared error of numbers or the negative log-likelihood of symbols, zeros as targets."""
    if model.config.interface.targets is not None:
        outputs = model._outputs(hidden)
        return functional.mse_loss(outputs, torch.zeros(outputs.shape))
    return model._nll(hidden, torch.zeros(hidden.shape[:-1], dtype=torch.int64))


def _inputs(config: ModelConfig, batch: int, length: int) -> Tensor:
    if config.interface.columns is not None:
        return torch.zeros(batch, length, config.interface.columns)
    return torch.zeros(batch, length, dtype=torch.int64)


@lru_cache(maxsize=64)
def _build(node: BlockNode, config: ModelConfig) -> tuple[Block, Context]:
    context = Context(config=config)
    with torch.device("meta"):
        block = build_block(node, context).train()
    _widen_spans(block)
    return block, context


forget_at_unload(_build.cache_clear)


def _build_model(root: Node, config: ModelConfig) -> Model | TransductionModel:
    model = build_on_meta(Recipe(root), config).train()
    _widen_spans(model)
    return model


def _widen_spans(module: nn.Module) -> None:
    for each in module.modules():
        if isinstance(each, WindowedBlock) and each.window.spans is not None:
            each.window.spans.note(1.0)
            each.context_length = each.window.max_distance


def _count_parameters(block: Block, context: Context) -> Numbers:
    shared = {f"shared {key}": _numbers(module) for key, module in context.shared.items()}
    return {"parameters": _numbers(block) - sum(shared.values()), **shared}


def _numbers(module: nn.Module | None) -> int:
    return 0 if module is None else sum(parameter.numel() for parameter in module.parameters())


def _is_recurrent(part: nn.Module) -> bool:
    return isinstance(part, Recurrent | RecurrentDecoder)


def _trains_in_loops(model: Model | TransductionModel) -> bool:
    """Return whether a training step loops over positions; a fused kernel computes an LSTM at once."""
    parts = list(model.modules())
    if isinstance(model, TransductionModel) and not isinstance(model.body, Seq2Seq):
        return True
    feeds = any(isinstance(each, RecurrentDecoder) and each.merge is not None for each in parts)
    looping = (each for each in parts if isinstance(each, Block) and each.loops_over_positions)
    return feeds or not all(isinstance(each, LSTM) and _HAS_ONEDNN for each in looping)


def _at_length(measure: Callable[[int], Numbers], length: int, lengths: tuple[int, ...]) -> Numbers:
    """Measure costs at `length`, or extrapolate them to it.

    If it exceeds the sum of the three `lengths`, a parabola through the measurements there is used. Shorter
    loops are measured as they are, which is faster and exact.
    """
    if not lengths or length <= sum(lengths):
        return measure(length)
    points = [measure(each) for each in lengths]
    first, second, third = lengths
    weights = (
        (length - second) * (length - third) / ((first - second) * (first - third)),
        (length - first) * (length - third) / ((second - first) * (second - third)),
        (length - first) * (length - second) / ((third - first) * (third - second)),
    )
    names = {name for point in points for name in point}
    return {
        name: max(0, round(sum(w * point.get(name, 0) for w, point in zip(weights, points, strict=True))))
        for name in names
    }


def _block_flops(spec: Spec, block: Block, length: int, *, past: int, width: int) -> Numbers:
    """Return a block's FLOPs for one sequence, the difference between batches of three and of two.

    So the operations that a block does once for a whole batch do not count.
    """

    def forward(batch: int) -> None:
        x, held = torch.zeros(batch, length, width), torch.zeros(batch, past, width)
        with plugin_errors("block", spec.name, type(block)):
            y = block.forward_with_past(x, held) if past else block(x)
            if spec.role is not Role.POOL and getattr(y, "shape", None) != x.shape:
                found = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
                raise TypeError(f"expected an output of shape {tuple(x.shape)}, like the input, got {found}")

    with torch.device("meta"):
        return {"flops": _flops(lambda: forward(3)) - _flops(lambda: forward(2))}


def _flops(run: Callable[[], object]) -> int:
    with (
        torch.no_grad(),
        _FlopCounter() as counter,
        _MetaMode(),
        kernels_left_out(),
    ):
        run()
    return counter.total


def _flops_by_module(model: TransductionModel, batch: int, length: int, scored: int) -> Counter[str]:
    """Return the FLOPs by module name; those of an inner module count for it alone."""
    found: Counter[str] = Counter()
    counter, before = _FlopCounter(), 0

    def close(name: str) -> None:
        nonlocal before
        found[name] += counter.total - before
        before = counter.total

    with (
        torch.device("meta"),
        torch.no_grad(),
        counter,
        _MetaMode(),
        kernels_left_out(),
        _entered_modules(model, close) as names,
    ):
        _loss(model, batch, length, scored, None)
    close(names[-1])
    return found


@contextmanager
def _entered_modules(model: nn.Module, leave: Callable[[str], None]) -> Iterator[list[str]]:
    """Yield the names of the running modules, innermost last, while the model runs.

    Before each change, `leave` is called with the last name. Operations between a model's parts count for
    the part that reads the inputs, or for "output". Methods other than `forward` count as "MODULE:METHOD".
    """
    names, handles, wrapped = [_INPUTS[0]], list[Any](), list[tuple[nn.Module, str]]()

    def enter(name: str) -> None:
        leave(names[-1])
        if name in _INPUTS or name == "output":
            names[0] = name
        names.append(names[0] if name in ("dropout", "input_dropout") else name)

    def exit_from(name: str) -> None:
        leave(names.pop())
        if name == "body":
            names[0] = "output"

    for name, module in model.named_modules():
        if not name:
            continue
        handles.append(module.register_forward_pre_hook(lambda *_, name=name: enter(name)))
        handles.append(module.register_forward_hook(lambda *_, name=name: exit_from(name), always_call=True))
        for method in ("run", "project_source"):
            if (call := getattr(module, method, None)) is not None:

                def counted(*given: Any, call: Any = call, name: str = f"{name}:{method}") -> Any:  # noqa: ANN401
                    enter(name)
                    try:
                        return call(*given)
                    finally:
                        exit_from(name)

                setattr(module, method, counted)
                wrapped.append((module, method))
    try:
        yield names
    finally:
        for handle in handles:
            handle.remove()
        for module, method in wrapped:
            delattr(module, method)


try:
    from torch.utils._python_dispatch import TorchDispatchMode  # torch has it under no public name
except ImportError:
    if TYPE_CHECKING:
        raise

    class TorchDispatchMode:
        """A replacement for torch's class, which raises BuildError when costs are measured."""

        def __init__(self) -> None:
            raise BuildError(
                "costs cannot be measured: expected a torch with TorchDispatchMode, got torch "
                f"{torch.__version__} without it; install another version of torch"
            )


class _MeasuringMode(TorchDispatchMode):
    """A torch mode that measures modules on the meta device, and caches the shapes of results.

    The key is a function and the shapes of its arguments. Many of torch's functions take 0.1 to 1 ms on the
    meta device, and loops call them with equal shapes.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, because nothing is compiled here, and torch would import its compiler."""
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 -- as torch passes them
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 -- whatever the function returns
        given: dict[str, Any] = kwargs or {}
        return self.measured(func, args, given, _call_once(func, args, given))

    @abstractmethod
    def measured(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: Any) -> Any:  # noqa: ANN401 -- as above
        """Measure a call that has returned `found`, and return what the caller gets."""


class _FlopCounter(_MeasuringMode):
    """A torch mode that counts FLOPs (`total`) by torch's formulas.

    Torch's FlopCounterMode also tries to decompose each operation, and takes twice the time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def measured(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: Any) -> Any:  # noqa: ANN401 -- as above
        if (formula := flop_registry.get(func.overloadpacket)) is not None:
            self.total += formula(*args, **kwargs, out_val=found)
        return found


_layouts: dict[object, Any] = {}
"""Layouts of results by function, default type and the layouts of arguments."""


def _call_once(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Call a function, or return empty tensors if the shapes of its results are known.

    A function that only changes one of its arguments is not called again with the same shapes, either.
    """
    changed = _changed_argument(func)
    if changed is None and not _makes_new_tensors(func):
        return func(*args, **kwargs)
    try:
        key = (func, torch.get_default_dtype(), _layout(args), _layout(tuple(kwargs.items())))
        known = _layouts.get(key)
    except TypeError:  # an argument without a hash
        return func(*args, **kwargs)
    if known is not None:
        return _empty(known) if changed is None else kwargs[changed] if changed in kwargs else args[0]
    given = changed and _layout(kwargs.get(changed, args[0]))
    found = func(*args, **kwargs)
    if len(_layouts) >= _MAX_LAYOUTS:
        _layouts.clear()
    if changed is None or _layout(found) == given:  # `out` may get another shape
        _layouts[key] = _layout(found)
    return found


@cache
def _makes_new_tensors(func: Any) -> bool:  # noqa: ANN401 -- an operator
    """Return whether a function's results never share memory with its arguments."""
    # under no public name: `is_view` does not tell functions that write
    if (schema := getattr(func, "_schema", None)) is None:  # then no result is cached
        return False
    values = (*schema.arguments, *schema.returns)
    tensors = all(str(each.type) == "Tensor" for each in schema.returns)
    return tensors and all(each.alias_info is None for each in values) and "view" not in schema.name


@cache
def _changed_argument(func: Any) -> str | None:  # noqa: ANN401 -- an operator
    """Return the argument that a function writes to and returns, if it does nothing else."""
    schema = getattr(func, "_schema", None)  # under no public name
    if schema is None or torch.Tag.inplace_view in func.tags or len(schema.returns) != 1:
        return None
    aliased = [each for each in schema.arguments if each.alias_info is not None]
    written = [each.name for each in aliased if each.alias_info.is_write and str(each.type) == "Tensor"]
    return written[0] if len(aliased) == 1 and written and written[0] in ("self", "out") else None


class _Layout(NamedTuple):
    """A tensor's properties that decide the shape of a function's results."""

    shape: torch.Size
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def _layout(value: Any) -> Any:  # noqa: ANN401 -- as torch passes them
    """Return a hashable description of a function's argument, for use as a cache key."""
    if isinstance(value, Tensor):
        return _Layout(value.shape, value.stride(), value.dtype, value.device)
    if isinstance(value, tuple | list):
        return tuple(map(_layout, value))
    return value if value is None or isinstance(value, str) else (type(value), value)


def _empty(layout: Any) -> Any:  # noqa: ANN401 -- as `_layout` returns it
    if isinstance(layout, _Layout):
        return torch.empty_strided(layout.shape, layout.strides, dtype=layout.dtype, device=layout.device)
    return None if layout is None else tuple(map(_empty, layout))


_CONVOLUTION = torch.ops.aten.convolution.default
_CONVOLUTION_BACKWARD = torch.ops.aten.convolution_backward.default


def _iter_tensors(held: object) -> Iterator[Tensor]:
    """Yield the tensors of an operation's result: one, or those in a list or tuple."""
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, list | tuple):
        for each in held:
            yield from _iter_tensors(each)


class _StepMemory(_MeasuringMode):
    """A torch mode that counts the bytes of tensors in use (`live`), and their maximum (`peak`).

    It also counts the bytes that each module stores for the backward pass, and stores first.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._own = _storages(model)
        self._sizes = {weakref.ref(each): 0 for each in self._own}  # memory that is in use
        # weak keys, so that tensors that the forward pass frees again do not count
        self._kept: weakref.WeakKeyDictionary[torch.UntypedStorage, str] = weakref.WeakKeyDictionary()
        self.names, self.live, self.peak = [""], 0, 0

    def measured(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: Any) -> Any:  # noqa: ANN401 -- as above
        if func is _CONVOLUTION:
            found = _laid_out_like(args[0], found)
        elif func is _CONVOLUTION_BACKWARD:
            found = tuple(map(_laid_out_like, (args[1], args[2], None), found))
        for tensor in _iter_tensors(found):
            storage = tensor.untyped_storage()
            if weakref.ref(storage) not in self._sizes:
                self._sizes[weakref.ref(storage, self._free)] = storage.nbytes()
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
        return found

    def _free(self, storage: weakref.ref[torch.UntypedStorage]) -> None:
        self.live -= self._sizes.pop(storage)

    def keep(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage not in self._own:
            self._kept.setdefault(storage, self.names[-1])
        return tensor.detach()

    def kept(self) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for storage, name in self._kept.items():
            found[name] += storage.nbytes()
        return found


def _laid_out_like(given: Tensor | None, found: Tensor | None) -> Tensor | None:
    """Return a convolution's result in the memory format of its input, as other devices do.

    The meta device (torch 2.13) puts channels first, and then the next layer would make a copy.
    """
    if given is None or found is None or found.dim() != 4:
        return found
    last = given.is_contiguous(memory_format=torch.channels_last)
    return torch.empty_like(found, memory_format=torch.channels_last) if last else found


def _storages(model: nn.Module) -> weakref.WeakKeyDictionary[torch.UntypedStorage, bool]:
    tensors = (*model.parameters(), *model.buffers())
    return weakref.WeakKeyDictionary({each.untyped_storage(): True for each in tensors})


_HAS_ONEDNN = torch.backends.mkldnn.is_available()
"""Whether torch computes LSTMs by oneDNN on a CPU."""


class _MetaMode(TorchFunctionMode):
    """A torch mode that replaces operations that the meta device does not support, or computes otherwise.

    They are fused attention, a CPU's LSTM, and the selection of targets in rare clusters, which has none.
    Fused attention computes products only if FLOPs are counted.
    """

    def __init__(self, *, counts_flops: bool = True) -> None:
        super().__init__()
        self._counts_flops = counts_flops

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401 -- as torch passes them
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 -- whatever the function returns
        if func is torch.lstm and _HAS_ONEDNN and not self._counts_flops:
            x, begin, weights, *_ = args
            return _FusedLSTM.apply(x, *begin, *weights)
        if func is Tensor.nonzero:
            return torch.zeros(0, args[0].dim(), dtype=torch.int64, device="meta")
        if func is not functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        q, k, v, *more = args
        given = (*more[:1], (kwargs or {}).get("attn_mask"))
        masks = (mask.to(q.dtype) for mask in given if mask is not None)
        return _FusedAttention.apply(self._counts_flops, q, k, v, *masks)


class _FusedAttention(torch.autograd.Function):
    """Attention that stores what a fused kernel does: inputs, output and one sum for each query."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, counts_flops: bool, q: Tensor, k: Tensor, v: Tensor, *mask: Tensor
    ) -> Tensor:
        if counts_flops:
            fewer = q.dim() == 4 and k.shape[1] != q.shape[1]
            keys, values = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) if fewer else x for x in (k, v))
            y = (q @ keys.transpose(-1, -2)) @ values
        else:
            y = torch.empty_like(q) if q.shape[-1] == v.shape[-1] else q.new_empty(*q.shape[:-1], v.shape[-1])
        ctx.save_for_backward(q, k, v, y, q.new_empty(q.shape[:-1]), *mask)
        return y

    @staticmethod
    def backward(ctx: Any, *_gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 -- as torch has it
        q, k, v, _, _, *mask = ctx.saved_tensors
        return (None, *map(torch.empty_like, (q, k, v)), *(None for _ in mask))


class _FusedLSTM(torch.autograd.Function):
    """An LSTM, time first, that stores what oneDNN's kernel does: inputs, outputs and a workspace."""

    @staticmethod
    def forward(
        ctx: FunctionCtx, x: Tensor, h: Tensor, c: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        weight_x, weight_h, bias, state_bias = weights
        rows = x.transpose(0, 1).contiguous()
        (length, batch, inputs), width = rows.shape, h.shape[2]
        y, last, cell = x.new_empty(length, batch, width), torch.empty_like(h), torch.empty_like(c)
        space = x.new_empty(_lstm_workspace(length, batch, inputs, width), dtype=torch.uint8)
        ctx.save_for_backward(rows, weight_x, weight_h, bias + state_bias, h, c, y, last, cell, space)
        return y.transpose(0, 1), last, cell

    @staticmethod
    def backward(ctx: Any, *_gradients: Tensor) -> tuple[Tensor, ...]:  # noqa: ANN401 -- as torch has it
        rows, weight_x, weight_h, bias, h, c, *_ = ctx.saved_tensors
        found = map(torch.empty_like, (h, c, weight_x, weight_h, bias, bias))
        return torch.empty_like(rows).transpose(0, 1), *found


def _lstm_workspace(length: int, batch: int, inputs: int, width: int) -> int:
    """Return the bytes that oneDNN keeps between the forward and the backward pass of an LSTM layer.

    The sizes are those of torch 2.13 with oneDNN, tested against the kernel. There are arrays for the gates
    and the outputs of each step, three for states as wide as inputs or outputs, and two as wide as outputs.
    Each array begins on a page. Its rows fill lines of a cache, and are not a multiple of 1 KiB apart.
    """

    def row(numbers: int) -> int:
        whole = -(-numbers // 16) * 16
        return whole + 16 if whole % 256 == 0 else whole

    states = 2 * (length + 1)  # what the layer reads and what it writes, before and after each step
    arrays = [length * row(4 * width), length * row(width)]
    arrays += [states * row(max(inputs, width))] * 3 + [states * width] * 2
    return sum(-(-4 * batch * numbers // 4096) * 4096 for numbers in arrays)
