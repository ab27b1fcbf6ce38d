"""`[ladder]`: models of growing size, with longer training for larger models.

The number of training tokens is proportional to the number of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import Field

from ..resolve.costs import parameter_count, sequence_tokens
from ..resolve.grid import PlannedRung
from ..schema.design import Expansion
from ..schema.factors import SEED, short_level_names
from ..schema.settings import BUDGET_KEYS, Level, TrialSettings
from ..schema.tables import StudyTable
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel, as_table, format_value, part_table
from ..text.toml_positions import KeyPath
from ..text.units import WIDTH, abbreviate_all

if TYPE_CHECKING:
    from ..plan import Plan
    from ..schema.design import DesignReader
    from ..study import Study

TABLE = "ladder"

_FEWEST = 2  # the fewest sizes of a ladder
_GAP = 3
_NARROWEST = 8  # characters of a model's name that are always shown

Sizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)]


class LadderSettings(StrictModel):
    """Keys of `[ladder]`: the sizes of the models, and how long they train."""

    sizes: dict[str, Sizes]
    """the numbers of each size by the hole that they fill, the smallest first, as in `{ width = [32, 64,
    128], depth = [2, 2, 4] }` for the holes `{width}` and `{depth}`; all lists have the same length"""
    tokens_per_parameter: float = Field(gt=0, le=1e6)
    """the number of training tokens for each parameter of the model, counting all parameters"""
    lr_exponent: float = Field(default=0.0, ge=-2, le=2)
    """the learning rate of a size is that of [train] times (its d_model / the d_model of the first size) to
    this power; 0 keeps one rate, for example if the rate is a factor or mup scales it"""


@dataclass(frozen=True, kw_only=True)
class Ladder(Expansion):
    """The sizes of a ladder: a list of values for each name, such as `width`.

    A list has one value for each rung. `factors` has the valid ones, which change together as factors, and
    `patch` the values of other keys that this needs. `width` names the list that fills d_model, if any.
    """

    table = StudyTable(summary="the sizes of the models, and how long they train", classes=(LadderSettings,))
    settings: LadderSettings
    factors: Mapping[str, list[int]]
    patch: Mapping[KeyPath, Any] = field(repr=False)
    width: str | None

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self:
        """Return the ladder of a study file; report faults.

        In a faulty ladder, or without the table [study], the sizes become factors of unknown levels, so that
        the rest of the file can be checked.
        """
        data = diagnostics.data
        found = diagnostics.validate(LadderSettings, (TABLE,), data[TABLE])
        faults = [] if found is None else list(_size_faults(data, found))
        for path, message in [*_clashes(data), *faults]:
            diagnostics.report(path, message)
        given = as_table(as_table(data[TABLE]).get("sizes"))
        has_study = isinstance(data.get("study"), Mapping)
        valid = found.sizes if found is not None and not faults and has_study else {}
        sizes = {name: [*valid.get(name, ())] for name in given}
        diagnostics.invalid.update(("factors", name) for name, each in sizes.items() if not each)
        factors = {} if diagnostics.has_search else sizes
        diagnostics.origins.update({("factors", name): (TABLE, "sizes", name) for name in factors})
        found = found or LadderSettings(sizes={}, tokens_per_parameter=1)
        return cls(settings=found, factors=factors, patch=_patch(data, factors), width=_width(data, found))

    def add_factors(self, factors: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**self.factors, **{name: factors[name] for name in factors if name not in self.factors}}

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        return {"ladder": tuple(name for name in self.settings.sizes if name in self.factors)}

    def change(self, settings: TrialSettings, levels: Mapping[str, Level]) -> TrialSettings:
        train, own = settings.train, self.settings
        in_epoch = train.epochs * train.batch_size * sequence_tokens(settings)
        steps = max(1, round(own.tokens_per_parameter * parameter_count(settings) / in_epoch))
        changes: dict[str, object] = {"steps_per_epoch": steps}
        if own.lr_exponent and self.width is not None:
            ratio = cast("int", levels[self.width]) / own.sizes[self.width][0]
            # rounded, so that the last bits of a power do not change the ids of trials
            lr = float(f"{train.optimizer.lr * ratio**own.lr_exponent:.6g}")
            changes["optimizer"] = train.optimizer.model_copy(update={"lr": lr})
        return settings.with_train(**changes)

    def notes(self, study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
        rungs, own = study.planned_sizes, self.settings
        words = f"sizes of {', '.join(own.sizes)}; {own.tokens_per_parameter:g} tokens for each parameter"
        rows = [("size", "parameters", "steps", "tokens", "a parameter", "lr"), *map(_cells, rungs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        room = WIDTH - sum(_GAP + width for width in widths) - _GAP
        names = list(dict.fromkeys(each.others for each in rungs))
        short = abbreviate_all(short_level_names(names), max(room, _NARROWEST)) if any(names) else names
        others = dict(zip(names, short, strict=True))
        lines = list[str]()
        for label, (size, *numbers) in zip(["", *(others[each.others] for each in rungs)], rows, strict=True):
            cells = [f"{label:<{max(map(len, short))}}"] if any(names) else []
            cells += [f"{text:>{width}}" for text, width in zip(numbers, widths[1:], strict=True)]
            lines.append(f"  {size:<{widths[0]}}   {'   '.join(cells)}".rstrip())
        yield "ladder", "\n".join([words, "", *lines])


EXPANSION = Ladder


def _patch(data: Mapping[str, Any], sizes: Mapping[str, list[int]]) -> dict[KeyPath, Any]:
    """Return the values that change when the ladder's sizes become factors, by path."""
    patch = dict[KeyPath, Any]()
    others = [name for name in as_table(data.get("factors")) if name not in (SEED, *sizes)]
    if sizes and isinstance(study := data.get("study"), Mapping):
        kept = {name: value for name, value in study.items() if name != "ablate"}
        patch[("study",)] = {**kept, "design": "zip", "around": others}
    return patch


def _clashes(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    study, train = as_table(data.get("study")), as_table(data.get("train"))
    if "design" in study and (design := study["design"]) != "grid":
        message = 'a [ladder] needs design = "grid", because each size is combined with all factors'
        yield ("study", "design"), f"{message}; got {format_value(part_table(design).get('name', design))}"
    if "ablate" in study:
        yield ("study", "ablate"), "a [ladder] has its own cells: remove ablate"
    for key in ("steps_per_epoch", *BUDGET_KEYS):
        if key in train:
            yield ("train", key), "a [ladder] sets the steps of each size: remove this key"
    for name, text in (("cells", "list no cells"), ("search", "search nothing")):
        if name in data:
            yield (name,), f"a [ladder] has its own cells: {text}"


def _size_faults(data: Mapping[str, Any], found: LadderSettings) -> Iterator[tuple[KeyPath, str]]:
    factors, path = as_table(data.get("factors")), (TABLE, "sizes")
    if not found.sizes:
        yield path, "expected the sizes of at least one hole, such as { width = [32, 64, 128] }"
    counts = {name: len(sizes) for name, sizes in found.sizes.items()}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{count} of {name}" for name, count in counts.items())
        yield path, f"expected equally many numbers in each list, got {text}"
    for name, sizes in found.sizes.items():
        if len(sizes) < _FEWEST:
            yield (*path, name), f"expected at least {_FEWEST} sizes, got {len(sizes)}"
        if any(smaller > larger for smaller, larger in pairwise(sizes)):
            message = f"expected sizes in increasing order, got {', '.join(map(str, sizes))}"
            yield (*path, name), message
        if name in factors:
            yield ("factors", name), f"{name} is a size of [ladder]: give this factor another name"
    rungs = list(zip(*found.sizes.values(), strict=False))
    if len(set(rungs)) < len(rungs):
        yield path, "expected different sizes, got one twice"
    if found.lr_exponent and _width(data, found) is None:
        yield (
            (TABLE, "lr_exponent"),
            'lr_exponent needs d_model to be one of the sizes, for example d_model = "{width}"',
        )
    if found.lr_exponent and as_table(data.get("model")).get("mup") is not None:
        message = f"expected 0, because [model] mup already scales rates by width; got {found.lr_exponent:g}"
        yield (TABLE, "lr_exponent"), message


def _width(data: Mapping[str, Any], found: LadderSettings) -> str | None:
    text = as_table(data.get("model")).get("d_model")
    return next((name for name in found.sizes if text == f"{{{name}}}"), None)


def _cells(rung: PlannedRung) -> tuple[str, ...]:
    return (
        rung.size,
        f"{rung.parameters:,}",
        f"{rung.steps:,}",
        f"{rung.tokens:,}",
        f"{rung.tokens / rung.parameters:.3g}",
        f"{rung.lr:g}",
    )
