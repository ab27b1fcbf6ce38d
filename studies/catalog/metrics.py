"""The metrics that trials report: what each is, which way is better, how many decimals it has.

A metric with an index is a family of numbers, stored in the long table of metrics under names such as
`bleu[10-20]`, `gate[12]` or `attention[3,7]`: one or two indices, each a number, a range or a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity; `higher` says which way is better, None where neither is."""

    name: str
    title: str  # as a caption begins
    higher_is_better: bool | None
    decimals: int
    axis_title: str = ""  # what it is along an axis, where the title says more than that
    index_titles: tuple[str, ...] = ()  # what each index of a family is
    steps_with_curriculum: bool = False  # whether it moves in the steps of the task's curriculum
    has_quantiles: bool = False  # whether the members of the family stand for many more values
    is_probe: bool = False  # whether it is measured inside of trained models, and not by the trials

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
"""What is stored of every model that was probed, whatever else could be measured of it."""


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
"""What a trial's row in the store says of its cost, by the name of the column."""

ANALYTIC_COSTS = ("parameters", "flops")
"""Costs that are counted, not measured: where all trials of a cell share one, it has no spread."""

METRICS_AND_COSTS: Mapping[str, Metric] = {**METRICS, **COSTS}
"""Every name that a column may have, without an index."""


def find_metric(name: str, digits: Mapping[str, int] | None = None) -> Metric:
    """The metric or cost of a name, also one with an index such as `bleu[10-20]`; KeyError if there is none.

    `digits` has decimals by name where a table asks for others.
    """
    found = METRICS_AND_COSTS[metric_family(name)]
    return replace(found, name=name, decimals=(digits or {}).get(name, found.decimals))


def better_arrow(metric: Metric) -> str:
    """The sign of the better side, as a heading has it; nothing where neither is better."""
    return {True: " ↑", False: " ↓", None: ""}[metric.higher_is_better]


def with_sign(number: str) -> str:
    """A number's text with its sign in front: a true minus, and nothing before a zero."""
    text = number.removeprefix("-").removeprefix("−")
    if not text.strip("0.,"):
        return text
    return f"+{text}" if text == number else f"−{text}"
