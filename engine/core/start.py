"""Trained models that trainings start from: which of their weights are taken, and which weights are new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import ActivememError, nearest_hint
from ...studies.catalog.own_corpora import FOLDER
from ...studies.schema.settings import StartSettings, TrialSettings
from ...studies.text.units import listed, plural
from .models import AnyModel, ModelFile, meta_model, read_model_file

_MAX_NAMED = 6
"""The number of weights that an error or a note names."""


class StartError(ActivememError):
    """Error for a trained model from which a training cannot start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The weights of a model by their origin: `taken` from a trained model, or `new`.

    `unused` are weights that only the trained model has.
    """

    taken: tuple[str, ...]
    new: tuple[str, ...]
    unused: tuple[str, ...]


def split_weights(start: StartSettings, own: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> Taken:
    """Return which of a model's `own` weights come from those of a `trained` model.

    Raise StartError, with all faults, for parts that the trained model lacks, and for weights of other
    shapes.
    """
    wanted = [
        name
        for name in sorted(trained)
        if start.take == "all" or any(is_part(name, part) for part in start.take)
    ]
    faults = [] if start.take == "all" else list(_unknown_parts(start.take, own, trained))
    other = [name for name in wanted if name in own and own[name].shape != trained[name].shape]
    if other:
        shapes = [f"{name} is {_shape(trained[name])}, here {_shape(own[name])}" for name in other]
        parts = sorted({name for name in _parts(own) if not any(is_part(each, name) for each in other)})
        fitting = [name for name in parts if any(is_part(each, name) for each in trained)]
        way = (
            f"leave them out, as in take = {fitting!r}".replace("'", '"')
            if fitting
            else "no part fits as a whole"
        )
        faults.append(f"weights of other shapes: {_some(shapes, '; ')}; {way}")
    taken = [name for name in own if name in wanted]
    if not faults and not taken:
        faults.append(f"the model has none of these weights: {_some(list(trained))}")
    if faults:
        raise StartError("; ".join(faults))
    return Taken(
        taken=tuple(taken),
        new=tuple(name for name in own if name not in set(taken)),
        unused=tuple(name for name in sorted(trained) if name not in set(taken)),
    )


def is_part(name: str, part: str) -> bool:
    """Return whether a weight belongs to a part: its name begins with it, or fits it as a pattern."""
    return name == part or name.startswith(f"{part}.") or fnmatchcase(name, part)


def _unknown_parts(
    parts: Sequence[str], own: Mapping[str, Tensor], trained: Mapping[str, Tensor]
) -> Iterable[str]:
    for part in parts:
        if not any(is_part(name, part) for name in trained if name in own):
            known = list(dict.fromkeys(_parts({name: trained[name] for name in trained if name in own})))
            yield f"no weight of both models is in '{part}'{nearest_hint(part, known)}; parts: {_some(known)}"


def _parts(names: Collection[str]) -> Iterable[str]:
    """Return the first words of the names of weights, such as `embedding`."""
    return (name.partition(".")[0] for name in names)


def _shape(weight: Tensor) -> str:
    return " × ".join(map(str, weight.shape))


def _some(names: Sequence[str], sign: str = ", ") -> str:
    more = f"{sign}and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return sign.join(names[:_MAX_NAMED]) + more


def read_start(start: StartSettings, data: Path) -> ModelFile:
    """Read the trained model of a training from the data folder, where a run keeps it.

    Raise StartError if it is not there or damaged.
    """
    path = data / FOLDER / start.sha256
    try:
        return read_model_file(path)
    except ActivememError as error:
        raise StartError(f"start from {start.model or start.sha256[:12]}: {error}") from error


@torch.no_grad()
def take_weights(
    model: AnyModel, start: StartSettings, data: Path, symbols: Mapping[str, Any] | None
) -> None:
    """Copy the weights that `[train] start` takes into a new model.

    `symbols` describes the vocabulary of the training, as in `ModelFile`. Raise StartError if the trained
    model is missing or has other weights, and if its embedding is taken but has other symbols.
    """
    file, own = read_start(start, data), model.state_dict()
    found = _split(start, own, file)
    others = [name for name in found.taken if not name.startswith(("body.", "norm."))]
    if file.symbols != symbols and others:
        raise StartError(
            f"start from {start.model or start.sha256[:12]}: it has other symbols, and {_some(others)} would "
            'belong to them: leave them out, as in take = ["body"]'
        )
    for name in found.taken:
        own[name].copy_(file.weights[name])
    model.after_optimiser_step()  # values that blocks keep of their weights


def _split(start: StartSettings, own: Mapping[str, Tensor], file: ModelFile) -> Taken:
    try:
        return split_weights(start, own, file.weights)
    except StartError as error:
        raise StartError(f"start from {start.model or file.trial.id}: {error}") from None


def describe_starts(
    all_settings: Iterable[TrialSettings], find: Callable[[str], Path | None]
) -> tuple[str, ...]:
    """Return a sentence for each model on what it takes of a trained one, and what is new.

    `find` returns the file with a SHA-256, or None if it is not here. Raise StartError with the faults of all
    models.
    """
    notes, faults, files = dict[str, None](), dict[str, None](), dict[str, ModelFile]()
    distinct = {
        (each.model, each.task.interface, each.train.start): each
        for each in all_settings
        if each.train.start is not None
    }
    for settings in distinct.values():
        start = settings.train.start
        assert start is not None, "only models with a start are left"
        if start.sha256 not in files and (path := find(start.sha256)) is not None:
            files[start.sha256] = read_model_file(path)
        if (file := files.get(start.sha256)) is None:
            continue
        own = meta_model(settings).state_dict()
        try:
            notes[_describe(start, own, file, _split(start, own, file))] = None
        except StartError as error:
            faults[f"  {settings.model.recipe}: {error}"] = None
    if faults:
        raise StartError("\n".join(["[train] start does not fit these models", *faults]))
    return tuple(notes)


def _describe(start: StartSettings, own: Mapping[str, Tensor], file: ModelFile, found: Taken) -> str:
    numbers = {name: weight.numel() for name, weight in own.items()}
    share = sum(numbers[name] for name in found.taken) / max(sum(numbers.values()), 1)
    of = f"{start.model or file.trial.id} (sha256 {start.sha256[:12]})"
    sides = [
        f"{plural(len(found.taken), 'weight')} of {of}, {share:.0%} of the parameters: {_groups(found.taken)}"
    ]
    sides += [f"new: {_groups(found.new)}"] if found.new else []
    sides += [f"not taken: {_groups(found.unused)}"] if found.unused else []
    return "; ".join(sides)


def _groups(names: Sequence[str]) -> str:
    return listed(dict.fromkeys(_parts(names)))
