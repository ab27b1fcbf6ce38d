"""`[ladder]`: sizes that grow together as factors, each trained on tokens in proportion to its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, cast

from pydantic import Field

from .schema.factors import SEED
from .schema.settings import Level, TrialSettings
from .text.document import Diagnostics
from .text.strict_model import StrictModel, format_value
from .text.toml_positions import KeyPath, KeyValueSpan

TABLE = "ladder"

_FEWEST = 2  # sizes of a ladder

Sizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)]


class LadderSettings(StrictModel):
    """`[ladder]`: the sizes of a model, which grow together, and the training length of each."""

    sizes: dict[str, Sizes]
    """the numbers of each size by the hole that they fill, the smallest first, as in `{ width = [32, 64,
    128], depth = [2, 2, 4] }`; all lists have the same length"""
    tokens_per_parameter: float = Field(gt=0, le=1e6)
    """the number of training tokens for each parameter of the model, counting all parameters"""
    lr_exponent: float = Field(default=0.0, ge=-2, le=2)
    """the learning rate of a size is that of [train] times (its d_model / the d_model of the first size) to
    this power; 0 keeps one rate, for example if the rate is a factor or mup scales it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The sizes of a ladder by name, all lists equally long.

    `width` names the list that fills d_model, if any.
    """

    sizes: Mapping[str, tuple[int, ...]]
    tokens_per_parameter: float
    lr_exponent: float
    width: str | None

    def place(self, levels: Mapping[str, Level]) -> int:
        """Return the index of a cell's size."""
        sizes = list(zip(*self.sizes.values(), strict=True))
        return sizes.index(tuple(cast("int", levels[name]) for name in self.sizes))

    def at(self, place: int) -> dict[str, Level]:
        """Return the levels of a size."""
        return {name: sizes[place] for name, sizes in self.sizes.items()}


def expand_ladder(diagnostics: Diagnostics) -> Ladder | None:
    """Return the ladder of a document and write it into factors and design; None without one.

    All faults are reported. The readable sizes of a faulty ladder become factors nevertheless.
    """
    data = diagnostics.data
    if TABLE not in data:
        return None
    found = diagnostics.validate(LadderSettings, (TABLE,), data[TABLE])
    faults = [*_clashes(data), *(() if found is None else _size_faults(data, found))]
    for path, message in faults:
        diagnostics.report(path, message)
    sizes = _readable_sizes(data[TABLE])
    study, train, factors = (data.get(name) for name in ("study", "train", "factors"))
    factors = factors if isinstance(factors, Mapping) else {}
    if isinstance(train, Mapping):
        data["train"] = {**train, "steps_per_epoch": 1}
    if isinstance(study, Mapping) and sizes and not diagnostics.has_search:
        others = [name for name in factors if name not in (SEED, *sizes)]
        kept = {name: value for name, value in study.items() if name != "ablate"}
        data["study"] = {**kept, "design": "zip", "around": others}
        data["factors"] = {**sizes, **{name: factors[name] for name in factors if name not in sizes}}
        places = cast("dict[KeyPath, tuple[str, KeyValueSpan]]", diagnostics.document.places)
        for path in [path for path in places if path[:2] == (TABLE, "sizes") and len(path) > 2]:
            places.setdefault(("factors", *path[2:]), places[path])  # faults are shown where the sizes stand
    if found is None or faults:
        return None
    return Ladder(
        sizes=found.sizes,
        tokens_per_parameter=found.tokens_per_parameter,
        lr_exponent=found.lr_exponent,
        width=_width(data, found),
    )


def _clashes(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the tables of the study that a ladder excludes."""
    study, train = data.get("study"), data.get("train")
    if isinstance(study, Mapping) and study.get("design", "grid") != "grid":
        message = 'expected design = "grid" with a [ladder], since all factors cross it'
        yield ("study", "design"), f"{message}, got {format_value(study['design'])}"
    if isinstance(study, Mapping) and "ablate" in study:
        yield ("study", "ablate"), "a [ladder] has its own cells: remove ablate"
    for key in ("steps_per_epoch", "tokens", "flops"):
        if isinstance(train, Mapping) and key in train:
            message = "a [ladder] sets the steps of each size: remove this key"
            yield ("train", key), message
    for name, told in (("cells", "list no cells"), ("search", "search nothing")):
        if name in data:
            yield (name,), f"a [ladder] has its own cells: {told}"


def _size_faults(data: Mapping[str, Any], found: LadderSettings) -> Iterator[tuple[KeyPath, str]]:
    factors, path = data.get("factors"), (TABLE, "sizes")
    if not found.sizes:
        yield path, "expected the sizes of at least one hole, such as { width = [32, 64, 128] }"
    counts = {name: len(sizes) for name, sizes in found.sizes.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of {name}" for name, count in counts.items())
        yield path, f"expected as many numbers in each list, got {told}"
    for name, sizes in found.sizes.items():
        if len(sizes) < _FEWEST:
            yield (*path, name), f"expected at least {_FEWEST} sizes, got {len(sizes)}"
        if any(smaller > larger for smaller, larger in pairwise(sizes)):
            message = f"expected sizes in increasing order, got {', '.join(map(str, sizes))}"
            yield (*path, name), message
        if isinstance(factors, Mapping) and name in factors:
            yield ("factors", name), f"{name} is a size of [ladder]: give this factor another name"
    rungs = list(zip(*found.sizes.values(), strict=False))
    if len(set(rungs)) < len(rungs):
        yield path, "expected different sizes, got one twice"
    if found.lr_exponent and _width(data, found) is None:
        yield (
            (TABLE, "lr_exponent"),
            'expected d_model to be one of the sizes, for example d_model = "{width}"',
        )
    model = data.get("model")
    if found.lr_exponent and isinstance(model, Mapping) and model.get("mup") is not None:
        message = f"expected 0 with [model] mup, which scales rates by width, got {found.lr_exponent:g}"
        yield (TABLE, "lr_exponent"), message


def _readable_sizes(table: object) -> dict[str, list[int]]:
    """Return the readable sizes, so that the rest of a study with a faulty ladder is checked.

    A hole without a readable size gets 1, so that it is not reported as unfilled.
    """
    table = table.get("sizes") if isinstance(table, Mapping) else None
    lists = table if isinstance(table, Mapping) else {}
    read: dict[str, list[int]] = {}
    for name, sizes in lists.items():
        listed = sizes if isinstance(sizes, list | tuple) else ()
        read[str(name)] = [each for each in listed if type(each) is int and each >= 1] or [1]
    rungs = list(dict.fromkeys(zip(*read.values(), strict=False)))
    return {name: [rung[place] for rung in rungs] for place, name in enumerate(read)}


def _width(data: Mapping[str, Any], found: LadderSettings) -> str | None:
    """Return the name of the sizes that fill d_model."""
    model = data.get("model")
    text = model.get("d_model") if isinstance(model, Mapping) else None
    return next((name for name in found.sizes if text == f"{{{name}}}"), None)


def step_tokens(settings: TrialSettings, sequence_tokens: int) -> int:
    """Return the tokens of a training step with sequences of this length."""
    return settings.train.batch_size * sequence_tokens


def on_rung(
    ladder: Ladder,
    settings: TrialSettings,
    levels: Mapping[str, Level],
    *,
    parameters: int,
    sequence_tokens: int,
) -> TrialSettings:
    """Return a cell's settings with the number of steps nearest to its tokens, at least one per epoch."""
    train = settings.train
    in_epoch = train.epochs * step_tokens(settings, sequence_tokens)
    steps = max(1, round(ladder.tokens_per_parameter * parameters / in_epoch))
    changes: dict[str, object] = {"steps_per_epoch": steps}
    if ladder.lr_exponent and ladder.width is not None:
        sizes = ladder.sizes[ladder.width]
        ratio = sizes[ladder.place(levels)] / sizes[0]
        lr = float(f"{train.optimizer.lr * ratio**ladder.lr_exponent:.6g}")
        changes["optimizer"] = train.optimizer.model_copy(update={"lr": lr})
    return settings.model_copy(update={"train": train.model_copy(update=changes)})
