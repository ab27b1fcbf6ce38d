"""Metrics of trials, with their names, titles, units and decimals.

Each metric says whether higher or lower is better. Plug-ins can register more.

A metric with an index is a family of numbers. The long table of metrics stores them under names such as
`bleu[10-20]`, `gate[12]` or `attention[3,7]`: up to three indices, each a number, a range or a word.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, get_args

from pydantic import ConfigDict, TypeAdapter

from ...errors import argument_fault, check_arguments, hint, number_fault, texts_fault
from ...plugins import PluginError, Registry, check_part
from ..text.units import format_quantity
from .tasks import Examples, TaskKind

if TYPE_CHECKING:
    from torch import nn


class Measure(Protocol):
    """Interface of a metric that is computed batch by batch, as in torchmetrics.

    A trial creates a new accumulator for each evaluation of its model.
    """

    def update(self, outputs: Any, targets: Any, /) -> None:  # noqa: ANN401 -- tensors, which nothing here loads
        """Add the outputs and the targets of one batch.

        Their shapes depend on the kind of task:

        - tagging: logits (tokens, symbols) and symbols (tokens,) of a fresh batch.
        - causal_tagging: logits and symbols of a split, at the scored tokens.
        - classification: logits (sequences, classes) and classes (sequences,) of a split.
        - token_classification: logits (tokens, classes) and classes (tokens,), without padding.
        - regression: predicted and true numbers (sequences,).
        - transduction: log-probabilities (tokens, symbols) of a split with teacher forcing, and its symbols.
        - language: minus the log-probability of each token of a split in nats, (tokens,), and the tokens.
        """
        ...

    def compute(self) -> float | None:
        """Return the metric over all added batches, as a number or tensor. None or NaN means no value."""
        ...


MeasureT = TypeVar("MeasureT", bound=Callable[[], Measure])


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleTemplate:
    """A title with placeholders, such as a number of layers.

    The settings of a trial fill them. The title is used for trials for which the fact `when` is true.
    """

    title: str
    when: str = ""  # if empty, the title is used for all trials
    short: str = ""  # the title on an axis, if it is shorter
    heading: str = ""  # added to the metric's name in the heading of a column
    depends: tuple[str, ...] = ()  # facts that must be equal for values to be comparable
    caution: str = ""  # why values of several models cannot be compared, as a clause


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity, such as a loss. `higher_is_better` is None if neither direction is better."""

    name: str
    title: str  # the beginning of a caption
    higher_is_better: bool | None = None
    decimals: int
    unit: str = ""  # if set, values have three digits and an SI prefix, not `decimals`
    is_share: bool = False  # whether values and their intervals stay between 0 and 1
    is_positive: bool = False  # whether values and their intervals never go below 0
    axis_title: str = ""  # the title on an axis, if it is shorter
    titles: tuple[TitleTemplate, ...] = ()  # more exact titles, for trials with equal facts
    index_titles: tuple[str, ...] = ()  # the meaning of each index of a family
    index_labels: tuple[str, ...] = ()  # for each index, the family whose values label it in figures
    noted: str = ""  # a second family, which is listed by index below a figure
    steps_with_curriculum: bool = False  # whether its values grow by the step of the task's curriculum
    has_quantiles: bool = False  # whether the family has quantiles of many more values
    is_probe: bool = False  # whether a probe measures it in trained models
    measure: Callable[[], Measure] | None = None  # for a registered metric: makes its accumulator
    kinds: frozenset[TaskKind] = frozenset()  # for a registered metric: the kinds of task that report it
    split: str = ""  # for a registered metric of one split: its name

    def __post_init__(self) -> None:
        either = (bool, type(None))
        check_arguments(
            argument_fault("title", self.title, str, "a text"),
            argument_fault("higher_is_better", self.higher_is_better, either, "True, False or None"),
            argument_fault("is_share", self.is_share, bool, "True or False"),
            number_fault("decimals", self.decimals, least=0),
            error=PluginError,
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest possible value. Confidence intervals do not go beyond them."""
        return 0.0 if self.is_share or self.is_positive else -math.inf, 1.0 if self.is_share else math.inf

    def format(self, value: float) -> str:
        """Format a value as tables show it: `1,234.5` or, with a unit, `1.23 GFLOPs`."""
        return format_quantity(value, self.unit) if self.unit else format_number(value, self.decimals)


def _read_metrics() -> dict[str, dict[str, Metric]]:
    """Read `metrics.toml`; return the metrics under each heading, by name."""
    tables = tomllib.loads(Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8"))
    for metrics in tables.values():
        for name, table in metrics.items():
            table["name"] = name
    form = TypeAdapter(dict[str, dict[str, Metric]], config=ConfigDict(extra="forbid"))
    return form.validate_python(tables)


_TABLES = _read_metrics()

METRICS: Registry[Metric] = Registry("metric", _TABLES["metrics"])
"""Every metric by its name."""

SPLITS = {"dev": "on the dev split", "test": "on the test split"}
"""The splits of tasks with a corpus or pairs, with the words for each in titles."""

_WITH_SPLITS = frozenset(
    {
        TaskKind.CAUSAL_TAGGING,
        TaskKind.CLASSIFICATION,
        TaskKind.TOKEN_CLASSIFICATION,
        TaskKind.LANGUAGE,
        TaskKind.TRANSDUCTION,
    }
)


def register_metric(
    name: str,
    *,
    title: str,
    higher_is_better: bool | None = None,
    decimals: int = 3,
    is_share: bool = False,
    kinds: Collection[str] = tuple(kind.name.lower() for kind in TaskKind),
) -> Callable[[MeasureT], MeasureT]:
    """Return a decorator that registers a metric with this name.

    The decorated class or function makes the metric's `Measure`. With `is_share` the metric's bands and
    intervals stay between 0 and 1. Every trial of one of the `kinds` of task (default: all) reports the
    metric: tagging and regression as `name`, kinds with splits as `dev_name` and `test_name`. Raises
    PluginError for an unknown kind, a taken name, or a class that is no `Measure`.
    """
    asked = _kinds_of_task(kinds)

    def register(measure: MeasureT) -> MeasureT:
        check_part(_measure_faults(measure))
        made = Metric(
            name=name,
            title=title,
            higher_is_better=higher_is_better,
            decimals=decimals,
            is_share=is_share,
            measure=measure,
        )
        if whole := asked - _WITH_SPLITS:
            METRICS.register(name, replace(made, kinds=whole))
        if divided := asked & _WITH_SPLITS:
            for split, words in SPLITS.items():
                full = f"{split}_{name}"
                METRICS.register(
                    full, replace(made, name=full, title=f"{title} {words}", kinds=divided, split=split)
                )
        return measure

    return register


def _measure_faults(measure: object) -> list[str]:
    """Return the faults of a registered metric. What a function makes is only known when a trial calls it."""
    if not isinstance(measure, type):
        return [] if callable(measure) else [f"expected a class or a function of a metric, got {measure!r}"]
    missing = [name for name in ("update", "compute") if not hasattr(measure, name)]
    return [f"{measure.__name__}: expected a definition of {name}" for name in missing]


def _kinds_of_task(names: Collection[str]) -> frozenset[TaskKind]:
    """Convert names of kinds of task, which plug-ins write in lower case."""
    check_arguments(texts_fault("kinds", names, "['tagging']"), error=PluginError)
    known = {kind.name.lower(): kind for kind in TaskKind}
    if unknown := [name for name in names if name not in known]:
        raise PluginError(f"expected task kinds among {', '.join(known)}, got {', '.join(unknown)}")
    return frozenset(known[name] for name in names)


PROBED_METRIC = "probed[asked]"
"""The metric that is stored for every probed model, even if nothing else could be measured."""


TUNED_METRICS = (
    "dev_bleu",
    "bleu_tuned",
    "bleu_tokenized",
    "bleu_sizes",
    "beam_tuned",
    "length_penalty_tuned",
    "coverage_penalty_tuned",
)
"""The metrics that the tuning of translation models measures."""

TUNED_METRIC = "bleu_tuned"
"""The metric that is stored for every model with a tuned decoder."""


def metric_family(name: str) -> str:
    """Return the metric's name without its index: `bleu` for `bleu[10-20]`."""
    return name.partition("[")[0]


def metric_index(name: str) -> str:
    """Return the index of a metric's name: `10-20` for `bleu[10-20]`; "" without one."""
    return name.partition("[")[2].removesuffix("]")


COSTS: Mapping[str, Metric] = _TABLES["costs"]
"""The costs in a trial's row in the store, by column name."""

MODEL_COSTS: Mapping[str, Metric] = _TABLES["model"]
"""The costs of a model that follow from a trial's settings."""

ANALYTIC_COSTS = ("flops", *MODEL_COSTS)
"""Costs that are computed, not measured: tables show no spread if all trials of a cell agree."""

TARGETS: Mapping[str, Metric] = _TABLES["targets"]
"""The costs of training until a metric reaches a value, by their names without brackets."""

METRICS_AND_COSTS: Mapping[str, Metric] = ChainMap(
    *(cast("MutableMapping[str, Metric]", each) for each in (METRICS, COSTS, TARGETS, MODEL_COSTS))
)
"""Every metric, cost and target by name, without an index."""


def direction_faults(key: str, name: str) -> list[tuple[tuple[str, ...], str]]:
    """Return a fault of the study-file key `key` unless higher or lower values of `name` are better.

    An unknown metric has no fault here; `unknown_metric` describes it.
    """
    if metric_family(name) not in METRICS_AND_COSTS or find_metric(name).higher_is_better is not None:
        return []
    return [((key,), f"expected a metric for which higher or lower is better, got '{name}'")]


NEEDS_PICK_BY = 'over needs a metric to choose by: add pick_by, such as pick_by = "dev_loss"'


def pick_faults(pick_by: str | None, over: Collection[str]) -> list[str]:
    """Return the faults of the key `pick_by`, the metric that picks one level of the factors in `over`."""
    if pick_by is None:
        return []
    found = [] if over else ['pick_by needs factors to choose from: add over, such as over = "lr"']
    if metric_family(pick_by) not in METRICS_AND_COSTS:
        found.append(unknown_metric(pick_by))
    return [*found, *(message for _, message in direction_faults("pick_by", pick_by))]


_ON_TESTS = ("test_", "solved_epochs", "best_accuracy")
"""Parts of the names of metrics that are measured on test sequences."""


def pick_bias(pick_by: str | None, over: Collection[str], shown: Collection[str]) -> str:
    """Return a sentence for captions if `pick_by` looks at the test split or is itself `shown`, else ""."""
    if pick_by is not None and any(part in pick_by for part in _ON_TESTS):
        return f"The test split chose {' and '.join(over)} (by {pick_by}), so the values are biased."
    if pick_by in shown:
        return f"{pick_by} itself chose {' and '.join(over)}, so its values are biased."
    return ""


def unknown_metric(name: str, known: Iterable[str] = METRICS_AND_COSTS) -> str:
    """Return the error message for an unknown metric, with the nearest name or the command that lists all."""
    near = hint(name, known) or "; list all: activemem list metrics (a plug-in's metrics need --plugin FILE)"
    return f"unknown metric '{name}'{near}"


def find_metric(name: str, digits: Mapping[str, int] | None = None) -> Metric:
    """Return the metric or cost with this name.

    The name may have an index, as in `bleu[10-20]`. `digits` overrides decimals by name. Raise KeyError for
    an unknown name.
    """
    family = metric_family(name)
    found = METRICS_AND_COSTS[family]
    if digits and name in digits:
        found = replace(found, decimals=digits[name], unit="")
    if name == family:
        return found
    target = read_target(name)
    title = found.title if target is None else f"{found.title.removesuffix(' a target')} {target}"
    return replace(found, name=name, title=title)


BETTER_ARROWS = {True: " ↑", False: " ↓", None: ""}
"""The arrow after the name of a metric, by whether higher values are better."""


def format_number(value: float, decimals: int) -> str:
    """Format a number with these decimals, grouped thousands and a true minus sign, and never as −0.

    A number that would have more than ten digits has three, and a power of ten: `6.57e124`.
    """
    if math.isfinite(value) and (abs(value) >= 10.0 ** (_MOST_DIGITS - decimals) or decimals >= _MOST_DIGITS):
        digits, _, exponent = format(value, "z.2e").partition("e")
        return f"{digits}e{int(exponent)}".replace("-", "−") if value else "0"
    # the option z turns -0.0 into 0.0
    return format(value, f"z,.{decimals}f").replace("-", "−").replace("inf", "∞")


def shown_decimals(decimals: int, largest: float) -> int:
    """Return how many decimals show values up to `largest`: more than `decimals` if these show only 0."""
    return 2 - math.floor(math.log10(largest)) if 0 < largest < 10.0**-decimals else decimals


def last_digit(decimals: int, largest: float) -> float:
    """Return one unit of the last digit in which values up to `largest` are shown."""
    if largest >= 10.0 ** (_MOST_DIGITS - decimals):
        return 10.0 ** (math.floor(math.log10(largest)) - 2)
    return 10.0 ** -shown_decimals(decimals, largest)


_MOST_DIGITS = 10
"""The most digits of a number, before and after its point, that is shown without a power of ten."""


def with_sign(number: str) -> str:
    """Return a number's text with a plus or minus sign. Zero has no sign."""
    text = number.removeprefix("-").removeprefix("−")
    if not text.partition(" ")[0].strip("0.,"):  # without its unit
        return text
    return f"+{text}" if text == number else f"−{text}"


Measured = Mapping[str, float]
"""Measured values by row index; the empty index stands for the only row."""

MeasureModel = Callable[["nn.Module", Iterator[Examples]], Measured]
"""Measures a trained model, in evaluation mode on the CPU, over batches of test examples."""

MeasureModelT = TypeVar("MeasureModelT", bound=MeasureModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProbe:
    """A registered probe, which measures trained models. `kinds` are the kinds of task that it supports."""

    name: str
    measure: MeasureModel
    kinds: frozenset[TaskKind]


PROBES: Registry[RegisteredProbe] = Registry("probe")
"""The plug-ins' probes by name; a probe and its metric share the name."""


def register_probe(
    name: str,
    *,
    title: str,
    higher_is_better: bool | None = None,
    decimals: int = 3,
    index_titles: Collection[str] = (),
    kinds: Collection[str] = tuple(kind.name.lower() for kind in TaskKind),
) -> Callable[[MeasureModelT], MeasureModelT]:
    """Return a decorator that registers a probe of trained models.

    A probe is a function from a trained model and batches to numbers by index. It registers a metric of its
    name, whose values are `name[index]`. Raises PluginError for an unknown kind or a taken name.
    """
    asked = _kinds_of_task(kinds)

    def register(measure: MeasureModelT) -> MeasureModelT:
        metric = Metric(
            name=name,
            title=title,
            higher_is_better=higher_is_better,
            decimals=decimals,
            index_titles=tuple(index_titles),
            is_probe=True,
        )
        METRICS.register(name, metric)
        PROBES.register(name, RegisteredProbe(name=name, measure=measure, kinds=asked))
        return measure

    return register


Currency = Literal["steps", "tokens", "flops", "seconds"]

CURRENCIES: dict[str, Currency] = {f"{currency}_to": currency for currency in get_args(Currency)}
"""The unit of cost of each family of targets."""

_TARGET = re.compile(
    r"(?P<family>[a-z]+_to)\[\s*(?P<metric>[A-Za-z_]\w*)\s*(?P<sign><=|>=)\s*(?P<value>[^\s\]]+)\s*\]"
)
_SIGNS = {"<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Target:
    """A value that a metric should reach in training, at a cost in the unit `currency`, such as steps."""

    currency: Currency
    metric: str
    at_most: bool
    value: float

    def __str__(self) -> str:
        """Return the target as text: `dev_loss ≤ 1.5`."""
        return f"{self.metric} {_SIGNS['<=' if self.at_most else '>=']} {self.value:g}".replace("-", "−")


def is_timed(name: str) -> bool:
    """Return whether a metric's values depend on the speed of the device, as seconds do."""
    return metric_family(name) in ("seconds", "seconds_to", "tokens_per_s")


def is_target(name: str) -> bool:
    """Return whether a name has the form of a target, such as `steps_to[dev_loss<=1.5]`."""
    return name.partition("[")[0] in CURRENCIES


def read_target(name: str) -> Target | None:
    """Parse a target's name, such as `steps_to[dev_loss<=1.5]`; return None if it is invalid."""
    found = _TARGET.fullmatch(name)
    if found is None or found["family"] not in CURRENCIES:
        return None
    try:
        value = float(found["value"])
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return Target(CURRENCIES[found["family"]], found["metric"], found["sign"] == "<=", value)
