"""Comparison of a block with a layer of another package.

Outputs, gradients and initial weights are compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import accumulate, pairwise, product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from activemem import ActivememError
from activemem.blocks import Block, Context, build_block
from activemem.blocks.core.initialisation import find_weights, initialise
from activemem.blocks.testing.fixtures import make_block, make_generator, random_sequences
from activemem.grammar import configure
from activemem.grammar.nodes import BlockNode

OUTPUT_LENGTHS, GRADIENT_LENGTHS = (1, 7, 33, 64, 65, 130), (7, 65)
"""The lengths at which outputs and gradients are compared with those of another layer."""

TOLERANCE = 1e-4
"""The largest accepted difference in single precision, relative to the largest number if that is above
one."""

ERROR_LEVEL = 0.01
"""The probability that equal distributions of initial weights are called different, for a whole layer."""

_LEAST_NUMBERS, _MOST_DRAWS = 4000, 100
"""The minimum number of values that are drawn of each weight, and the maximum number of layers drawn."""


class OtherLayerError(ActivememError):
    """Error for a layer that does not fit the block, or cannot be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLayer:
    """A layer of another package; `make` builds it for the model width `width`."""

    width: int
    make: Callable[[], nn.Module]

    @classmethod
    def of(
        cls, kind: Callable[..., Any], settings: Mapping[str, Any], *, width: int, **given: Any
    ) -> OtherLayer:
        """Return a layer whose constructor gets the sizes of the block, under the names that it has there."""
        arguments = _arguments(kind, settings, width) | given
        return cls(width=width, make=lambda: kind(**arguments))

    def draw(self, seed: int) -> nn.Module:
        """Return a layer with weights drawn from a seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.make().float().eval()


_SIZES: Mapping[str, tuple[str, ...]] = {
    "width": ("hidden_size", "d_model", "dim", "model_dim", "embed_dim", "width", "n_embd"),
    "heads": ("num_heads", "n_heads", "nheads", "n_head", "heads"),
    "head_width": ("head_dim", "headdim", "dim_head", "head_width"),
    "state": ("state_size", "d_state", "state"),
    "channels": ("intermediate_size", "channels"),
    "short_conv": ("conv_size", "conv_kernel", "d_conv"),
}
"""The sizes of a block, each with the names that constructors of other packages use for it."""


def _arguments(kind: Callable[..., Any], settings: Mapping[str, Any], width: int) -> dict[str, Any]:
    """Return the constructor's arguments that follow from the block's settings and its width."""
    try:
        names = set(signature(kind).parameters)
    except (TypeError, ValueError):
        return {}
    known = {"width": width} | {name: value for name, value in settings.items() if name in _SIZES}
    found = {
        next(each for each in alternatives if each in names): known[ours]
        for ours, alternatives in _SIZES.items()
        if ours in known and not names.isdisjoint(alternatives)
    }
    if "expand" in names and settings.keys() >= {"heads", "head_width"}:
        found["expand"] = settings["heads"] * settings["head_width"] / width
    taps = settings.get("short_conv")
    if "use_short_conv" in names and taps is not None:
        found["use_short_conv"] = bool(taps)
    if not taps:  # its kernel needs the convolution
        found = {name: value for name, value in found.items() if name not in _SIZES["short_conv"]}
    others = {"layer_idx": 0, "causal": True, "is_causal": True}
    return found | {name: value for name, value in others.items() if name in names}


class _Part(NamedTuple):
    """One linear map of the block, and the weights of the other layer that it corresponds to.

    `how` is "rows", for the rows of several weights, "taps", for such rows as columns, or "product", for the
    second weight times the first. If `rows` are given, only these rows of the other weight are read.
    """

    name: str
    ours: Tensor
    theirs: tuple[str, ...]
    how: str
    rows: tuple[int, ...] | None = None

    def read(self, weights: Mapping[str, Tensor]) -> Tensor:
        parts = [weights[name].detach() for name in self.theirs]
        if self.rows is not None:
            parts = [each[list(self.rows)] for each in parts]
        if self.how == "product":
            return parts[1] @ parts[0]
        if self.how == "taps":
            return torch.cat([each.flatten(1) for each in parts]).T
        whole = torch.cat([each.squeeze() if each.dim() > 2 else each for each in parts])
        return whole.reshape(self.ours.shape)


_NAMES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("q", "rows", (r"q_proj\.weight",)),
    ("k", "rows", (r"k_proj\.weight",)),
    ("v", "rows", (r"v_proj\.weight",)),
    ("output", "rows", (r"(o|out)_proj\.weight",)),
    ("gate", "rows", (r"g_proj\.weight",)),
    ("gate", "product", (r"g_proj\.0\.weight", r"g_proj\.1\.weight")),
    ("gate", "rows", (r"f_proj\.weight",)),
    ("gate.bias", "rows", (r"f_proj\.bias",)),
    ("norm", "rows", (r"(o_norm|g_norm|g_norm_swish_gate|norm)\.weight",)),
    ("short_conv", "taps", (r"q_conv1d\.weight", r"k_conv1d\.weight", r"v_conv1d\.weight")),
    ("short_conv", "taps", (r"conv1d\.weight",)),
    ("beta", "rows", (r"b_proj\.weight",)),
    ("erase", "rows", (r"b_proj\.weight",)),
    ("write", "rows", (r"w_proj\.weight",)),
    ("rates.map", "rows", (r"a_proj\.weight",)),
    ("rates.map.0", "rows", (r"f_proj\.0\.weight",)),
    ("rates.map.1", "rows", (r"f_proj\.1\.weight",)),
    ("rates.log_rate", "rows", (r"A_log",)),
    ("rates.step_offset", "rows", (r"dt_bias",)),
    ("rates.step_offset", "rows", (r"dt_proj\.bias",)),
    ("steps", "rows", (r"dt_proj\.weight",)),
    ("selection", "rows", (r"x_proj\.weight",)),
    ("skip", "rows", (r"D",)),
    ("rates.skip", "rows", (r"D",)),
    ("decay.0", "rows", (r"gk_proj\.0\.weight",)),
    ("decay.1", "rows", (r"gk_proj\.1\.weight",)),
    ("decay.1.bias", "rows", (r"gk_proj\.1\.bias",)),
)
"""Rules that find the weights of a map of the block in other packages.

A rule has the name of the map, the way to build the map (see `_Part`), and patterns of names. The first rule
that gives a weight of the right shape is used.
"""

_FUSED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"in_proj\.weight", ("input", "gate")),
    (r"in_proj\.weight", ("gate", "v", "k", "q", "rates.map")),
)
"""Weights of other packages that have the rows of several maps of the block, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightMap:
    """A mapping of another layer's weights to a block's weights.

    `zeroed` are biases of the layer that the block does not have; they become zero.
    """

    parts: tuple[_Part, ...]
    zeroed: tuple[str, ...]

    zero_names: ClassVar[re.Pattern[str]] = re.compile(r"bias$")

    @classmethod
    def of(cls, block: Block, layer: nn.Module) -> WeightMap:
        """Match the weights of a block and a layer.

        They match by name, or else by shape if only one weight of that shape is left on each side. Raise
        OtherLayerError with the unmatched weights. Biases of the layer that the block does not have become
        zero.
        """
        theirs = dict(layer.named_parameters())
        maps = _maps(block)
        parts, missing = _fused_parts(dict(maps), theirs), dict[str, Tensor]()
        for name, ours in maps:
            if any(part.name == name for part in parts):
                continue
            fits = (part for part in _named_parts(name, ours, theirs) if _fits(part, theirs))
            part = next(fits, None)
            if part is None:
                missing[name] = ours
            else:
                parts.append(part)
        used = {name for part in parts for name in part.theirs}
        for name, ours in list(missing.items()):
            same = [
                each for each, weight in theirs.items() if each not in used and weight.shape == ours.shape
            ]
            if len(same) == 1 and [each.shape for each in missing.values()].count(ours.shape) == 1:
                parts.append(_Part(name, missing.pop(name), (same[0],), "rows"))
                used.add(same[0])
        left = [name for name in theirs if name not in used]
        zeroed = tuple(name for name in left if cls.zero_names.search(name))
        left = [f"{name} {tuple(theirs[name].shape)}" for name in left if name not in zeroed]
        if missing or left:
            ours = [f"{name} {tuple(each.shape)}" for name, each in missing.items()]
            raise OtherLayerError(
                "the weights have no counterparts: "
                f"unmatched in the block: {', '.join(ours) or 'nothing'}; "
                f"in the layer: {', '.join(left) or 'nothing'}"
            )
        return cls(parts=tuple(parts), zeroed=zeroed)

    @torch.no_grad()
    def copy(self, layer: nn.Module) -> None:
        """Copy the layer's weights into the block; biases of the layer that the block lacks become zero."""
        theirs = dict(layer.named_parameters())
        for name in self.zeroed:
            theirs[name].zero_()
        for part in self.parts:
            part.ours.copy_(part.read(theirs))

    def __str__(self) -> str:
        text = ", ".join(f"{part.name} from {' and '.join(part.theirs)}" for part in self.parts)
        return f"{text}; set to zero: {', '.join(self.zeroed)}" if self.zeroed else text


def _maps(block: Block) -> list[tuple[str, Tensor]]:
    weights, found = find_weights(block), list[tuple[str, Tensor]]()
    for path, parameter in block.named_parameters():
        name = path.removesuffix(".weight")
        parts = weights[parameter].split_maps(parameter.detach())
        letters = name.rpartition(".")[2]
        if len(parts) == len(letters) > 1:
            found += list(zip(letters, parts, strict=True))
        else:
            found.append((name, parameter.detach()))
    return found


def _named_parts(name: str, ours: Tensor, theirs: Mapping[str, Tensor]) -> list[_Part]:
    found: list[_Part] = []
    for known, how, patterns in _NAMES:
        if known != name:
            continue
        names = [_find(one, theirs) for one in patterns]
        chosen = tuple(each for each in names if each is not None)
        if len(chosen) == len(patterns):
            found.append(_Part(name, ours, chosen, how))
    return found


def _find(pattern: str, theirs: Mapping[str, Tensor]) -> str | None:
    return next((name for name in theirs if re.search(rf"(^|\.){pattern}$", name)), None)


def _fused_parts(maps: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> list[_Part]:
    """Match maps of the block, and their short convolution, to one weight, such as that of q, k and v."""
    for pattern, names in _FUSED:
        fused = _find(pattern, theirs)
        if fused is None or not maps.keys() >= set(names):
            continue
        ends = list(accumulate((len(maps[name]) for name in names), initial=0))
        if ends[-1] != len(theirs[fused]):
            continue
        rows = {name: range(*bounds) for name, bounds in zip(names, pairwise(ends), strict=True)}
        parts = [_Part(name, maps[name], (fused,), "rows", tuple(own)) for name, own in rows.items()]
        taps = _find(r"conv1d\.weight", theirs)
        if taps is not None and "short_conv" in maps and "q" in rows:
            # the convolution has the channels of q, k and v, here in the order of the block
            channels = [row - rows["v"].start for name in ("q", "k", "v") for row in rows[name]]
            parts.append(_Part("short_conv", maps["short_conv"], (taps,), "taps", tuple(channels)))
        return parts
    return []


def _fits(part: _Part, theirs: Mapping[str, Tensor]) -> bool:
    try:
        return part.read(theirs).shape == part.ours.shape
    except RuntimeError:
        return False


@torch.no_grad()
def _perturb(layer: nn.Module) -> nn.Module:
    generator = make_generator(1)
    for parameter in layer.parameters():
        if bool((parameter == parameter.flatten()[0]).all()):
            parameter.add_(0.5 * torch.rand(parameter.shape, generator=generator))
    return layer


def compare_weights(node: BlockNode, layer: OtherLayer) -> tuple[bool, str]:
    """Match the weights of a block and a layer. Raise OtherLayerError if some have no counterpart."""
    block = make_block(node, causal=True, width=layer.width, dtype=torch.float32)
    return True, str(WeightMap.of(block, layer.draw(0)))


def compare_with_layer(node: BlockNode, layer: OtherLayer) -> tuple[bool, str]:
    """Compare the outputs and gradients of a block and a layer that have the same weights.

    The gradients are those of the input. The result names lengths at which the layer raises an exception.
    Raise OtherLayerError if none is left.
    """
    block = make_block(node, causal=True, width=layer.width, dtype=torch.float32)
    other = _perturb(layer.draw(0))
    WeightMap.of(block, other).copy(other)
    block.after_optimiser_step()
    findings: list[str] = []
    for name, lengths, run in (
        ("outputs", OUTPUT_LENGTHS, _output),
        ("gradients", GRADIENT_LENGTHS, _input_gradient),
    ):
        done, faults, most = list[int](), dict[str, list[str]](), 0.0
        for length in lengths:
            x = random_sequences(1, length, width=layer.width, dtype=torch.float32)
            try:
                theirs = run(other, x)
            except Exception as error:  # noqa: BLE001 -- another package's kernels may raise anything
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"
                faults.setdefault(reason, []).append(f"{length}")
                continue
            ours = run(block, x)
            most = max(most, float((ours - theirs).abs().max()) / max(1.0, float(theirs.abs().max())))
            done.append(length)
        not_run = [f"{name} not run at {', '.join(those)} ({reason})" for reason, those in faults.items()]
        if not done and name == "outputs":
            raise OtherLayerError(not_run[0])
        if done:
            findings.append(f"{name} at lengths {', '.join(map(str, done))} within {most:.0e}")
        if not most <= TOLERANCE:
            return False, f"{findings[-1]}, expected {TOLERANCE:.0e}"
        findings += not_run
    return True, "; ".join(findings)


def _first(y: Any) -> Tensor:
    return y[0] if isinstance(y, tuple) else y


def _output(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return _first(layer(x))


def _input_gradient(layer: nn.Module, x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    y = _first(layer(x))
    return torch.autograd.grad((y * y.detach().cos()).sum(), x)[0]


def compare_initial_weights(node: BlockNode, layer: OtherLayer) -> tuple[bool, str]:
    """Test whether the initial weights of a block and a layer have equal distributions.

    The block's weights are drawn by each rule of `[model] init`, to find the rule that the layer follows.
    Two-sample Kolmogorov–Smirnov tests of all weights together have one error level.
    """
    config = configure(d_model=layer.width, causal=True, dropout=0.0)
    block = build_block(node, Context(config=config))
    mapped = WeightMap.of(block, layer.draw(0))
    parts = [part for part in mapped.parts if part.how != "product"]
    draws = min(_MOST_DRAWS, math.ceil(_LEAST_NUMBERS / min(part.ours.numel() for part in parts)))
    theirs: dict[str, list[Tensor]] = {part.name: [] for part in parts}
    for seed in range(draws):
        weights = dict(layer.draw(seed).named_parameters())
        for part in parts:
            theirs[part.name].append(part.read(weights).flatten())
    least: list[str] | None = None
    text, tested = "", f"{len(parts)} weights, {draws} draws, error level {ERROR_LEVEL:.0%}"
    for rule, uniform_bias in product(_RULES, (False, True)):
        ours: dict[str, list[Tensor]] = {part.name: [] for part in parts}
        for seed in range(draws):
            initialise(block, make_generator(seed), rule, uniform_bias=uniform_bias)
            for part in parts:
                ours[part.name].append(part.ours.clone().flatten())
        differ = [
            name
            for name, numbers in ours.items()
            if not _equally_distributed(numbers, theirs[name], ERROR_LEVEL / len(parts))
        ]
        if least is None or len(differ) < len(least):
            bias = ', bias_init = "uniform"' if uniform_bias else ""
            least, text = differ, f'with [model] init = "{rule}"{bias}'
        if not differ:
            break
    if least:
        return False, f"{text} these weights have another distribution: {', '.join(least)} ({tested})"
    return True, f"equally distributed {text} ({tested})"


_RULES = ("glorot", "uniform", "he", "lecun")
"""The rules by which a model draws its matrices, the default first."""


def _equally_distributed(ours: Sequence[Tensor], theirs: Sequence[Tensor], level: float) -> bool:
    """Test whether initial weights have the same distribution, or are constants that are equal."""
    if all(each.equal(draws[0]) for draws in (ours, theirs) for each in draws):
        return torch.allclose(ours[0].sort().values, theirs[0].sort().values, rtol=1e-5, atol=1e-6)
    from scipy.stats import ks_2samp

    one, other = (torch.cat(list(draws)).double().numpy() for draws in (ours, theirs))
    _, p = np.asarray(ks_2samp(one, other, method="asymp"))
    return bool(p > level)
