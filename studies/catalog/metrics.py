"""The metrics that trials report, each with its title, better direction and decimals.

A metric with an index is a family of numbers, stored in the long table of metrics under names such as
`bleu[10-20]`, `gate[12]` or `attention[3,7]`: one or two indices, each a number, a range or a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity; `higher_is_better` is None where neither direction is better."""

    name: str
    title: str  # as a caption begins
    higher_is_better: bool | None
    decimals: int
    axis_title: str = ""  # on an axis, if shorter than the title
    index_titles: tuple[str, ...] = ()  # what each index of a family is
    steps_with_curriculum: bool = False  # whether it changes in steps of the task's curriculum
    has_quantiles: bool = False  # whether the members of the family stand for many more values
    is_probe: bool = False  # whether a probe measures it in trained models

    def format(self, value: float) -> str:
        """The number as tables print it: thousands grouped, a true minus, never minus zero."""
        return format(value, f"z,.{self.decimals}f").replace("-", "−")


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="max_length",
            title="Longest length with 100 % accuracy",
            higher_is_better=True,
            decimals=1,
            steps_with_curriculum=True,
        ),
        Metric(name="accuracy", title="Accuracy, share that is right", higher_is_better=True, decimals=3),
        Metric(
            name="best_accuracy",
            title="Highest accuracy, share of sequences",
            higher_is_better=True,
            decimals=3,
        ),
        Metric(
            name="solved_epochs",
            title="Epochs until all test sequences were right",
            higher_is_better=False,
            decimals=0,
            axis_title="Epochs until solved",
        ),
        Metric(name="loss", title="Loss, nats a token", higher_is_better=False, decimals=4),
        Metric(
            name="dev_loss", title="Loss on the dev split, nats a token", higher_is_better=False, decimals=4
        ),
        Metric(
            name="dev_bpc", title="Bits per character on the dev split", higher_is_better=False, decimals=3
        ),
        Metric(
            name="dev_perplexity",
            title="Perplexity per word on the dev split",
            higher_is_better=False,
            decimals=1,
        ),
        Metric(
            name="test_loss", title="Loss on the test split, nats a token", higher_is_better=False, decimals=4
        ),
        Metric(
            name="dev_accuracy",
            title="Accuracy on the dev split, share of symbols",
            higher_is_better=True,
            decimals=3,
        ),
        Metric(
            name="test_accuracy",
            title="Accuracy on the test split, share of symbols",
            higher_is_better=True,
            decimals=3,
        ),
        Metric(
            name="test_exact",
            title="Test sequences written without a fault, as a share",
            higher_is_better=True,
            decimals=3,
            axis_title="Share without a fault",
        ),
        Metric(
            name="test_bpc", title="Bits per character on the test split", higher_is_better=False, decimals=3
        ),
        Metric(
            name="test_perplexity",
            title="Perplexity per word on the test split",
            higher_is_better=False,
            decimals=1,
        ),
        Metric(
            name="length",
            title="Length at the last epoch, tokens",
            higher_is_better=True,
            decimals=1,
            axis_title="Length, tokens",
            steps_with_curriculum=True,
        ),
        Metric(name="tokens_per_s", title="Tokens a second", higher_is_better=True, decimals=0),
        Metric(
            name="f1",
            title="Labelled brackets, F1 over sentences with a tree",
            higher_is_better=True,
            decimals=1,
            axis_title="F1",
        ),
        Metric(
            name="f1_of_all",
            title="Labelled brackets, F1 over all sentences",
            higher_is_better=True,
            decimals=1,
            axis_title="F1",
        ),
        Metric(name="precision", title="Precision of labelled brackets", higher_is_better=True, decimals=1),
        Metric(name="recall", title="Recall of labelled brackets", higher_is_better=True, decimals=1),
        Metric(
            name="tree_share",
            title="Sentences with a well-formed tree, as a share",
            higher_is_better=True,
            decimals=3,
            axis_title="Share with a tree",
        ),
        Metric(
            name="bleu",
            title="BLEU",
            higher_is_better=True,
            decimals=1,
            index_titles=("Source length, words",),
        ),
        Metric(
            name="attention",
            title="Weight of attention",
            higher_is_better=None,
            decimals=2,
            index_titles=("Output position", "Input position"),
            is_probe=True,
        ),
        Metric(
            name="memory_change",
            title="Cosine of consecutive memory states",
            higher_is_better=None,
            decimals=3,
            index_titles=("Sample",),
            has_quantiles=True,
            is_probe=True,
        ),
        Metric(
            name="theta",
            title="Share of steps at which standard attention changes the memory more",
            higher_is_better=None,
            decimals=2,
            index_titles=("Standard attention",),
            is_probe=True,
        ),
        Metric(
            name="gamma",
            title="Product of the forget gates so far",
            higher_is_better=None,
            decimals=3,
            index_titles=("Step",),
            is_probe=True,
        ),
        Metric(
            name="forget_gate",
            title="Activation of the forget gate",
            higher_is_better=None,
            decimals=3,
            index_titles=("Step", "Sample"),
            has_quantiles=True,
            is_probe=True,
        ),
        Metric(
            name="probed",
            title="Sequences of the probe",
            higher_is_better=None,
            decimals=0,
            index_titles=("Count",),
            is_probe=True,
        ),
    )
}
"""Every metric by its name."""


PROBED_METRIC = "probed[asked]"
"""The metric that is stored for every probed model, whatever else could be measured."""


def metric_family(name: str) -> str:
    """The metric's name without its index: `bleu` of `bleu[10-20]`."""
    return name.partition("[")[0]


COSTS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="parameters", title="Parameters", higher_is_better=None, decimals=0),
        Metric(name="flops", title="Operations of the training", higher_is_better=None, decimals=0),
        Metric(name="seconds", title="Training time, s", higher_is_better=False, decimals=1),
        Metric(name="peak_mib", title="Peak memory, MiB", higher_is_better=False, decimals=1),
    )
}
"""The costs in a trial's row in the store, by column name."""

ANALYTIC_COSTS = ("parameters", "flops")
"""Costs that are counted, not measured; one that all trials of a cell share has no spread."""

METRICS_AND_COSTS: Mapping[str, Metric] = {**METRICS, **COSTS}
"""Every metric and cost by name, without an index."""


def find_metric(name: str, digits: Mapping[str, int] | None = None) -> Metric:
    """The metric or cost of a name, with or without an index (`bleu[10-20]`); KeyError if there is none.

    `digits` overrides decimals by name.
    """
    found = METRICS_AND_COSTS[metric_family(name)]
    return replace(found, name=name, decimals=(digits or {}).get(name, found.decimals))


def better_arrow(metric: Metric) -> str:
    """The arrow in a heading towards better values; empty where neither direction is better."""
    return {True: " ↑", False: " ↓", None: ""}[metric.higher_is_better]


def with_sign(number: str) -> str:
    """A number's text with its sign: a true minus, and none before a zero."""
    text = number.removeprefix("-").removeprefix("−")
    if not text.strip("0.,"):
        return text
    return f"+{text}" if text == number else f"−{text}"
