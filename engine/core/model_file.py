"""The file of a trained model: weights as safetensors, and everything needed to load and use them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from ...errors import ActivememError
from ...grammar import analyse
from ...storage.checksums import add_model_checksum, encode_metadata, read_model
from ...storage.errors import DamagedError, UnreadableError
from ...storage.files import replacing
from ...studies.resolve.costs import model_config
from ...studies.resolve.trial import Trial, code_fault, shown
from ...studies.schema.settings import read_recipe
from .models import AnyModel, build_model

_log = logging.getLogger(__name__)

FORMAT = 1
"""The version of the description, raised when older programs could no longer read a new file."""


class ModelFileError(ActivememError):
    """A file that does not hold a usable trained model; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A trained model: trial, weights by name, symbols of its text, and final metrics.

    `symbols` is the objective's description of the symbols as plain values; None if the model reads no text.
    `versions` has the versions of activemem and of packages with plug-in blocks, and the commit.
    """

    trial: Trial
    weights: Mapping[str, Tensor]
    symbols: Mapping[str, Any] | None = None
    metrics: Mapping[str, float]
    version: str
    commit: str | None


def write_model_file(path: Path, model: ModelFile) -> None:
    """Write a model's file durably: after a crash the old file is intact or the new one is complete.

    The same model gives the same bytes.
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

    Raises ModelFileError with the reason if the file is missing, damaged, from another program or version, or
    names something that is not registered here, such as a plug-in's block.
    """
    description: Mapping[str, Any] = {}
    try:
        description, data = read_model(path)
        if description.get("format") != FORMAT:
            raise ModelFileError(f"expected a file of format {FORMAT}, got {description.get('format')!r}")
        tensors = load(data)
        aliases: Mapping[str, str] = description["aliases"]
        return ModelFile(
            trial=Trial.from_json(json.dumps(description["trial"])),
            weights=tensors | {name: tensors[original] for name, original in aliases.items()},
            symbols=description["symbols"],
            metrics=description["metrics"],
            version=description["version"],
            commit=description["commit"],
        )
    except FileNotFoundError as error:
        raise ModelFileError(f"{path}: expected a model's file, got none") from error
    except (DamagedError, UnreadableError) as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (ActivememError, SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        if plugins := _plugins(description):
            raise ModelFileError(
                f"{path}: expected the plug-ins that it was trained with: {plugins}"
            ) from error
        message = (
            error
            if isinstance(error, ActivememError)
            else f"expected a trained model, got other values: {error}"
        )
        raise ModelFileError(f"{path}: {message}") from error


def _plugins(description: Mapping[str, Any]) -> str:
    try:
        code: dict[str, str] = json.loads(description["trial"]["settings"])["code"]
        return ", ".join(f"{what} of {shown(source)}" for what, source in code.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def rebuild(file: ModelFile) -> AnyModel:
    """Build a file's model in evaluation mode; raise ModelFileError if the weights do not fit its recipe.

    Warn if the source of its plug-ins has changed since the training.
    """
    if (fault := code_fault(file.trial.settings)) is not None:
        _log.warning("the model of trial %s: %s", file.trial.id, fault)
    model, interface = file.trial.settings.model, file.trial.settings.task.interface
    expected = analyse(read_recipe(model.recipe), model_config(model, interface), length=1).parameters
    found = sum(weight.numel() for weight in file.weights.values())
    if expected > found:  # before anything of that size is allocated
        raise ModelFileError(f"expected {expected:,} parameters, got {found:,}")
    built = build_model(model, interface, torch.Generator())
    try:
        built.load_state_dict(dict(file.weights))
    except RuntimeError as error:
        faults = " ".join(str(error).split("\n\t")[1:])
        raise ModelFileError(f"expected the weights of {built}: {faults}") from error
    return built.eval()


def _unshared(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return weights on the CPU, each stored once, and aliases of shared weights such as tied embeddings."""
    tensors, aliases, first = dict[str, Tensor](), dict[str, str](), dict[tuple[Any, ...], str]()
    for name, weight in weights.items():
        place = (weight.data_ptr(), weight.shape, weight.stride(), weight.dtype)
        if weight.numel() and place in first:
            aliases[name] = first[place]
        else:
            first[place] = name
            tensors[name] = weight.detach().to("cpu", memory_format=torch.contiguous_format).clone()
    return tensors, aliases
