"""Models of trials: their construction, precision and FLOPs, and the files of trained models."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from ...blocks import Model, build
from ...blocks.core.block import BuildError
from ...blocks.models.model import TransductionModel, build_on_meta
from ...errors import ActivememError, quoted
from ...grammar import ModelConfig, analyse
from ...grammar.analysis.analyse import count_parameters
from ...plugins import is_inline, loading_advice
from ...storage.checksums import METADATA_KEY, add_model_checksum, encode_metadata, read_model
from ...storage.errors import DamagedError, UnreadableError, describe_faults
from ...storage.files import replacing
from ...studies.resolve.costs import gains_from_bf16
from ...studies.resolve.trial import Trial, code_fault, code_owner, shown, tables_from_json
from ...studies.schema.settings import Precision, TrialSettings, read_recipe
from ...studies.text.units import format_bytes
from .resources import memory_here

AnyModel = Model | TransductionModel
"""A model of one sequence, or of a source and a target."""


def build_model(settings: TrialSettings, generator: torch.Generator) -> AnyModel:
    """Build the model of a trial on the CPU. `generator` draws the initial weights.

    Raise BuildError for weights and gradients that are larger than the memory, before anything is allocated.
    """
    recipe = read_recipe(settings.model.recipe)
    if (needed := bytes_of_weights(settings)) > memory_here():
        raise BuildError(
            f"the weights and gradients of {recipe.text} take {format_bytes(needed)}, and this machine has "
            f"{format_bytes(memory_here())} of memory: choose a smaller model"
        )
    return build(recipe, settings.config, generator=generator, max_parameters=None)


def bytes_of_weights(settings: TrialSettings) -> int:
    """Return the bytes of a trial's weights and their gradients in single precision."""
    return 2 * 4 * count_parameters(read_recipe(settings.model.recipe), settings.config)


def meta_model(settings: TrialSettings) -> AnyModel:
    """Build a trial's model on the meta device. There weights have names and shapes but take no memory."""
    return build_on_meta(read_recipe(settings.model.recipe), settings.config)


def autocast(
    settings: TrialSettings, device: torch.device, positions: int | None = None
) -> AbstractContextManager[object]:
    """Return an autocast context for bf16 precision.

    For other precisions the context does nothing. On a CPU, steps of so few `positions` that bf16 would be
    slower are computed in float32. None means many positions.
    """
    if settings.train.precision != "bf16":
        return nullcontext()
    if device.type == "cpu" and positions is not None and not gains_from_bf16(settings.model, positions):
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def sequence_flops(settings: TrialSettings, *, tokens: int, past: int) -> int:
    """Return the FLOPs of a training step on one sequence.

    They are those of the forward and the backward pass. The sequence has `tokens` positions, and can see
    `past` earlier ones.
    """
    return _training_flops(settings.model.recipe, settings.config, tokens, past)


@lru_cache(maxsize=4096)
def _training_flops(recipe: str, config: ModelConfig, tokens: int, past: int) -> int:
    return analyse(read_recipe(recipe), config, length=tokens, past=past).training_flops


_log = logging.getLogger(__name__)


_OPERATIONS: tuple[Any, ...] = attrgetter(
    "cuda.matmul", "mkldnn.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn.conv", "mkldnn.rnn"
)(torch.backends)
"""Operations with their own float32 precision in torch. That of cuDNN comes before those of its parts."""


class PrecisionError(ActivememError):
    """Error for a device that does not support the precision in the settings."""


def check_precision(precision: Precision, device: torch.device) -> None:
    """Raise PrecisionError if a device does not fully support a precision.

    Some devices would silently use a different precision. On GPUs for which torch emulates bf16, matrix
    products are slow and convolutions missing.
    """
    if precision == "float32" or (precision == "bf16" and device.type != "cuda"):
        return
    if precision == "tf32" and os.environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        raise PrecisionError("precision 'tf32' is switched off by NVIDIA_TF32_OVERRIDE=0 in the environment")
    has_gpu = device.type == "cuda" and torch.cuda.is_available()
    if precision == "tf32":
        is_supported = has_gpu and torch.cuda.is_tf32_supported()
    else:
        is_supported = has_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    if not is_supported:
        got = torch.cuda.get_device_name(device) if has_gpu else "no GPU"
        raise PrecisionError(
            f"precision '{precision}' needs a GPU that supports it, such as NVIDIA's since Ampere, got {got}"
        )


@contextmanager
def float32_products(precision: Precision) -> Iterator[None]:
    """Within this context, compute float32 matrix products, convolutions and RNNs with this precision.

    That is TF32 if `precision` is tf32, else full float32. Under bf16 this concerns the products that
    autocast leaves in float32. The previous precisions are restored at the end.
    """
    before = [operation.fp32_precision for operation in _OPERATIONS]
    for operation in _OPERATIONS:
        operation.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        yield
    finally:
        for operation, earlier in zip(_OPERATIONS, before, strict=True):
            operation.fp32_precision = earlier


FORMAT = 1
"""The version of the description. It grows when older programs could no longer read a new file."""


class ModelFileError(ActivememError):
    """Error for a file without a usable trained model; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The content of a trained model's file.

    `weights` maps names to tensors. `symbols` is the objective's description of the vocabulary as plain
    values; None if the model reads no text. `metrics` are the final metrics. `version` and `commit` are those
    of the activemem that wrote the file.
    """

    trial: Trial
    weights: Mapping[str, Tensor]
    symbols: Mapping[str, Any] | None = None
    metrics: Mapping[str, float]
    version: str
    commit: str | None


class _Description(BaseModel):
    """Schema of the description in a model's file. A valid checksum does not show who wrote it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    trial: dict[str, Any]
    metrics: dict[str, float]
    symbols: dict[str, Any] | None
    aliases: dict[str, str]
    version: str
    commit: str | None


def with_weights(file: ModelFile, weights: Mapping[str, Tensor]) -> ModelFile:
    """Return the file with these weights, on the CPU; if they have changed since the training, no metrics.

    Raise ModelFileError for weights of other names or shapes.
    """
    before = file.weights
    if wrong := [name for name in before.keys() | weights if not _fits(before.get(name), weights.get(name))]:
        recipe, names = file.trial.settings.model.recipe, ", ".join(sorted(wrong))
        raise ModelFileError(
            f"expected the weights of {recipe}: {names} differ; merge adapters before saving"
        )
    # the user may have moved the module to a GPU, or converted it
    now = {name: weights[name].to("cpu", weight.dtype) for name, weight in before.items()}
    same = all(torch.equal(weight, before[name]) for name, weight in now.items())
    return file if same else replace(file, weights=now, metrics={})


def _fits(before: Tensor | None, now: Tensor | None) -> bool:
    return before is not None and now is not None and before.shape == now.shape


def write_model_file(path: Path, model: ModelFile) -> None:
    """Write a model's file durably.

    After a crash the old file is intact or the new one is complete. The same model gives the same bytes.
    """
    tensors, aliases = _unshared(model.weights)
    description = {
        "format": FORMAT,
        "trial": json.loads(model.trial.to_json()),
        "metrics": dict(model.metrics),
        "symbols": model.symbols,
        "aliases": aliases,
        "version": model.version,
        "commit": model.commit,
    }
    data = add_model_checksum(save(tensors, metadata=encode_metadata(description)))
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_model_file(path: Path) -> ModelFile:
    """Read a model's file onto the CPU, without executing anything in it.

    Raise ModelFileError with the reason if the file is missing, damaged, from another program or version, or
    names something that is not registered here, such as a plug-in's block.
    """
    description: Mapping[str, Any] = {}
    try:
        description, data = read_model(path)
        if (found := description.get("format")) != FORMAT:
            raise ModelFileError(f"expected a file of format {FORMAT}, got {quoted(repr(found))}")
        tensors, described = load(data), _Description.model_validate(description)
        return ModelFile(
            trial=Trial.from_json(json.dumps(described.trial)),
            weights=tensors | {name: tensors[original] for name, original in described.aliases.items()},
            symbols=described.symbols,
            metrics=described.metrics,
            version=described.version,
            commit=described.commit,
        )
    except FileNotFoundError as error:
        raise ModelFileError(f"{path}: expected a model's file, got none") from error
    except DamagedError as error:
        if _is_foreign(path):
            named = "activemem model list STUDY shows a study's models"
            raise ModelFileError(
                f"{path}: expected a trained model of activemem, got another file; {named}"
            ) from error
        mend = "activemem store repair, then activemem study run, trains a model of a store again"
        raise ModelFileError(f"{path}: {error}; {mend}") from error
    except UnreadableError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except ValidationError as error:
        raise ModelFileError(f"{path}: expected a trained model: {describe_faults(error)}") from None
    except (
        ActivememError,
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        if plugins := _plugins(description):
            needs = f"this model needs the plug-ins of its training: {plugins}"
            raise ModelFileError(f"{path}: {needs}") from error
        message = (
            error
            if isinstance(error, ActivememError)
            else f"expected a trained model, got other values: {error}"
        )
        raise ModelFileError(f"{path}: {message}") from error


def _is_foreign(path: Path) -> bool:
    """Return whether another program wrote a file that is no sound model."""
    try:
        with safe_open(path, "pt") as file:
            return METADATA_KEY not in (file.metadata() or {})
    except (OSError, SafetensorError):  # no file of tensors, unless its first bytes changed
        return path.suffix != ".safetensors"


def _plugins(description: Mapping[str, Any]) -> str:
    try:
        code: dict[str, str] = tables_from_json(description["trial"]["settings"])["code"]
        named = ", ".join(
            shown(source) if what in source else f"{what} of {shown(source)}" for what, source in code.items()
        )
        owners = sorted(set(map(code_owner, code.values())))
    except (ValueError, KeyError, TypeError):
        return ""
    how = ["load their files first (--plugin FILE, or activemem.load_plugin in Python)"]
    if any(map(is_inline, owners)):
        how = [*dict.fromkeys(filter(None, map(loading_advice, owners)))]
    return "; ".join((named, *how)) if named else ""


def rebuild(file: ModelFile) -> AnyModel:
    """Build the model of a file, in evaluation mode.

    Raise ModelFileError if the weights do not fit the recipe. Warn if the source of its plug-ins has changed
    since the training.
    """
    if (fault := code_fault(file.trial.settings, trains=False)) is not None:
        _log.warning("the model of trial %s: %s", file.trial.id, fault)
    settings = file.trial.settings
    expected = analyse(read_recipe(settings.model.recipe), settings.config, length=1).parameters
    found = sum(weight.numel() for weight in file.weights.values())
    if expected > found:  # before anything of that size is allocated
        raise ModelFileError(f"expected {expected:,} parameters, got {found:,}")
    built = build_model(settings, torch.Generator())
    try:
        built.load_state_dict(dict(file.weights))
    except RuntimeError as error:
        faults = " ".join(str(error).split("\n\t")[1:])
        raise ModelFileError(f"expected the weights of {built}: {faults}") from error
    return built.eval()


def _unshared(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return each distinct weight under one name, and a map from its other names to this name.

    The weights are on the CPU. Tied embeddings, for example, are one weight with two names. Safetensors
    refuses to store tensors that share memory.
    """
    tensors, aliases, first = dict[str, Tensor](), dict[str, str](), dict[tuple[Any, ...], str]()
    for name, weight in weights.items():
        place = (weight.data_ptr(), weight.shape, weight.stride(), weight.dtype)
        if weight.numel() and place in first:
            aliases[name] = first[place]
        else:
            first[place] = name
            tensors[name] = weight.detach().to("cpu", memory_format=torch.contiguous_format).clone()
    return tensors, aliases
