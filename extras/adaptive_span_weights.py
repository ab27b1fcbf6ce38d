"""Loader for the released weights of the all-attention paper, which registers nothing.

Sukhbaatar et al. 2019 (facebookresearch/adaptive-span). The program's all-attention layer is `all_attn`, and
its Transformer layer is `sa(pos=relative) >> ff`. All layers share a vector for each distance.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from activemem import ActivememError

Model = Part = Any
"""A model of `activemem.build`, or one of its parts, which are read by their names."""

_PREFIX = "module."  # prefix of all names, from the module of parallel training


class WeightsError(ActivememError):
    """Error for weights that cannot be loaded.

    They do not fit the model, or the released program cannot build such a model. The message lists all
    reasons.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    """A tensor of the released program's checkpoint, and its counterpart in our model.

    A tensor without `ours` is not loaded: it follows from its shape, or is a copy of `same_as`.
    """

    name: str
    shape: tuple[int, ...]
    ours: str | None = None
    convert: Callable[[Tensor], Tensor] = lambda tensor: tensor
    same_as: str | None = None


def load_adaptive_span_weights(model: Model, path: Path | str) -> None:
    """Load the weights of a checkpoint of the released program into a model.

    The file is a whole checkpoint, or only its entry `model`, which holds the weights. The model's symbols
    are then numbered as in the program (`adaptive_span_symbols`). The file does not contain the length of the
    fading ramp, a block's `ramp`. Raise WeightsError with all differences between model and program, or all
    missing, surplus or differently shaped tensors.
    """
    _refuse(
        f"the released program cannot build {model.recipe.text}",
        [*_config_faults(model), *_body_faults(model)],
    )
    saved, wanted = _read(path), list(_tensors(model))
    _refuse(f"the weights in {path} do not fit {model.recipe.text}", _faults(saved, wanted))
    parts: dict[str, list[Tensor]] = {}
    for one in wanted:
        if one.ours is not None:
            parts.setdefault(one.ours, []).append(one.convert(saved[one.name]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.cat(parts.pop(name)))
    assert not parts, f"there is no parameter {', '.join(parts)}"
    model.after_optimiser_step()


def adaptive_span_symbols(tokens: Tensor, *, by_frequency: bool) -> Tensor:
    """Return the number that the released program gives to each symbol of our model.

    The index is the symbol's number in our model. `tokens` is the training text. The program numbers symbols
    by first appearance or, with clusters, by frequency (ties in reverse order). Raise WeightsError if a
    number below the greatest does not occur in the text.
    """
    known, first, counts = np.unique(tokens.numpy(), return_index=True, return_counts=True)
    if len(known) <= known[-1]:
        raise WeightsError(f"expected a text with all {known[-1] + 1} symbols, got {len(known)} of them")
    order = np.lexsort((first, counts))[::-1] if by_frequency else np.argsort(first)
    return torch.from_numpy(np.argsort(order))


def _read(path: Path | str) -> Mapping[str, Tensor]:
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise WeightsError(f"{path} cannot be read: {error}") from error
    weights = saved.get("model", saved) if isinstance(saved, Mapping) else None
    if not isinstance(weights, Mapping) or not all(isinstance(each, Tensor) for each in weights.values()):
        raise WeightsError(f"{path}: expected a dict of tensors, or a checkpoint with such a dict as `model`")
    named = cast("Mapping[str, Tensor]", weights)
    return {name.removeprefix(_PREFIX): tensor for name, tensor in named.items()}


def _faults(saved: Mapping[str, Tensor], wanted: Sequence[_Tensor]) -> Iterator[str]:
    """Yield a message for each tensor that is missing or unexpected, or has another shape.

    A tensor with `same_as` must equal the saved tensor of that name.
    """
    for one in wanted:
        if one.name not in saved:
            yield f"expected {one.name} {one.shape}, got none"
            continue
        found = saved[one.name]
        if tuple(found.shape) != one.shape:
            yield f"expected {one.name} {one.shape}, got {tuple(found.shape)}"
        elif one.same_as is not None and not found.equal(saved.get(one.same_as, found)):
            yield f"expected {one.name} to equal {one.same_as}, got other numbers"
    known = {one.name for one in wanted}
    yield from (f"expected no {name}, got {tuple(saved[name].shape)}" for name in saved if name not in known)


def _config_faults(model: Model) -> Iterator[str]:
    settings, interface = model.config.settings, model.config.interface
    if interface.columns is not None or not interface.predicts_symbols:
        yield "expected symbols as inputs and outputs, got numbers"
        return
    clusters = bool(settings.cutoffs)
    wanted: dict[str, object] = {
        "norm": "post",
        "norm_kind": "layer_norm",
        "norm_eps": 1e-5,
        "residual": True,
        "position": "none",
        "zero_past": True,
        "output_bias": True,
        "project_first_cluster": clusters,
        "tied": settings.tied and clusters,
        "tied_bias": settings.tied,
    }
    if not interface.causal:
        yield "expected causal=True, got False"
    if settings.embedding_scale != (math.sqrt(settings.d_model) if clusters else 1.0):
        yield f"expected embedding={'unit_scaled' if clusters else 'unit'}, got {settings.embedding}"
    for name, value in wanted.items():
        if getattr(settings, name) != value:
            yield f"expected {name}={value}, got {getattr(settings, name)}"


_SIZES = ("N", "filter", "span", "heads", "head_width", "adaptive", "ramp")
"""The arguments of blocks that the released program has; it has others only with their defaults."""


def _body_faults(model: Model) -> Iterator[str]:
    text, spans = model.recipe.text, set[str]()
    if re.search(r"\+|\btied\(", text):
        yield f"expected no sum and no tied weights, got {text}"
    # the canonical text leaves out arguments with their defaults
    for name, arguments in dict.fromkeys(re.findall(r"\b([a-z_]\w*)(?:\(([^()]*)\))?", text)):
        given = dict(each.split("=") for each in arguments.split(", ") if "=" in each)
        if name not in ("all_attn", "sa", "ff"):
            yield f"expected all_attn, or sa and ff, got {name}"
            continue
        if name != "ff":
            spans.add(given.get("span", "its default"))
        if name == "sa" and given.pop("pos", "none") != "relative":
            yield "sa: expected pos=relative"
        yield from (
            f"{name}: expected no {key}, got {key}={given[key]}" for key in given if key not in _SIZES
        )
    if len(spans) != 1:
        yield f"expected attention with one span, got {', '.join(sorted(spans)) or 'none'}"


def _tensors(model: Model) -> Iterator[_Tensor]:
    """Yield the tensors that the released program saves for a model, in order of its parts."""
    if model.config.settings.cutoffs:
        yield from _clustered_ends(model)
    else:
        yield from _same(model.embedding, "in_emb", "embedding")
        yield from _same(model.output, "out_emb", "output")
    parts = [layer.part for layer in model.body.layers]
    place, first = next((place, each) for place, each in enumerate(parts) if hasattr(each, "window"))
    positions = first.window.positions
    yield _Tensor(
        name="key_pe",
        shape=(1, *positions.weight.T.shape),
        ours=f"body.layers.{place}.part.window.positions.weight",
        convert=lambda key_pe: key_pe[0].T,
    )
    number = -1
    for place, layer in enumerate(model.body.layers):
        ours, norm, part = f"body.layers.{place}", layer.norm, parts[place]
        if not hasattr(part, "window"):  # feed-forward
            yield from _same(norm, f"layers.{number}.norm2", f"{ours}.norm")
            yield from _same(part.inner, f"layers.{number}.ff.fc1", f"{ours}.part.inner")
            yield from _same(part.outer, f"layers.{number}.ff.fc2", f"{ours}.part.outer")
        else:
            number += 1
            yield from _same(norm, f"layers.{number}.norm1", f"{ours}.norm")
            yield from _attention(part, f"layers.{number}.attn", f"{ours}.part")


def _clustered_ends(model: Model) -> Iterator[_Tensor]:
    """Yield the tensors of a clustered embedding and a clustered softmax.

    If the softmax is tied, the program saves their tables and projections twice. The scores of clusters are
    saved in reverse order.
    """
    config = model.config
    width, others = config.settings.d_model, len(config.settings.cutoffs)
    for place, cluster in enumerate(config.clusters):
        table, projection = (cluster.size, cluster.width), (width, cluster.width)
        inputs, maps = f"in_emb.emb_layers.{place}.weight", f"in_emb.emb_projs.{place}"
        yield _Tensor(name=inputs, shape=table, ours=f"embedding.embeddings.{place}.weight")
        yield _Tensor(name=maps, shape=projection, ours=f"embedding.maps.{place}.weight")
        words = "output.words" if place == 0 else f"output.tables.{place - 1}"
        scored, down = f"out_emb.out_layers.{place}.weight", f"out_emb.out_projs.{place}"
        if config.settings.tied:
            yield _Tensor(name=scored, shape=table, same_as=inputs)
            yield _Tensor(name=down, shape=projection, same_as=maps)
        else:
            narrow = f"output.projections.{place}.weight"
            yield _Tensor(name=scored, shape=table, ours=f"{words}.weight")
            yield _Tensor(name=down, shape=projection, ours=narrow, convert=Tensor.t)
        yield _Tensor(name=f"out_emb.out_layers.{place}.bias", shape=(cluster.size,), ours=f"{words}.bias")
    for kind, shape in (("weight", (others, width)), ("bias", (others,))):
        name, ours = f"out_emb.cluster_proj.{kind}", f"output.choice.{kind}"
        yield _Tensor(name=name, shape=shape, ours=ours, convert=lambda rows: rows.flip(0))


def _attention(part: Part, theirs: str, ours: str) -> Iterator[_Tensor]:
    """Yield the projections, persistent vectors and spans of an attention block."""
    width, persistent = part.output.weight.shape[0], getattr(part, "persistent", None)
    if hasattr(part, "key_value"):  # all-attention
        places = {"query": "query", "key": "key_value", "val": "key_value", "out": "output"}
    else:
        places = {"query": "qkv", "key": "qkv", "val": "qkv", "out": "output"}
    for kind, place in places.items():
        yield _Tensor(
            name=f"{theirs}.proj_{kind}.weight", shape=(width, width), ours=f"{ours}.{place}.weight"
        )
    spans, inner = part.window.spans, f"{theirs}.attn"
    if persistent is not None:
        heads, count, head_width = persistent.keys.shape
        vectors = f"{inner}.persistent_memory"
        yield _Tensor(
            name=f"{vectors}.key",
            shape=(heads, head_width, count),
            ours=f"{ours}.persistent.keys",
            convert=lambda keys: keys.transpose(1, 2),
        )
        yield _Tensor(
            name=f"{vectors}.val", shape=(heads, count, head_width), ours=f"{ours}.persistent.vectors"
        )
    if spans is None:
        return
    masks = [f"{inner}.adaptive_span._mask"]
    if persistent is not None:  # it includes the spans
        masks.append(f"{inner}.persistent_memory.adaptive_span._mask")
    first = f"{masks[0]}.current_val"
    for mask in masks:
        yield _Tensor(
            name=f"{mask}.current_val",
            shape=(part.heads, 1, 1),
            ours=f"{ours}.window.spans.z" if mask == masks[0] else None,
            convert=Tensor.flatten,
            same_as=None if mask == masks[0] else first,
        )
        yield _Tensor(name=f"{mask}.mask_template", shape=(spans.span,))


def _same(module: nn.Module, theirs: str, ours: str) -> Iterator[_Tensor]:
    """Yield the tensors of a module that has the same parameter names and shapes in both programs."""
    for name, parameter in module.named_parameters():
        yield _Tensor(name=f"{theirs}.{name}", shape=tuple(parameter.shape), ours=f"{ours}.{name}")


def _refuse(title: str, faults: Iterable[str]) -> None:
    parts = [f"  {fault}" for fault in faults]
    if parts:
        raise WeightsError("\n".join([title, *parts]))
