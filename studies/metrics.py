"""The metrics that trials report: what each is, which way is better, how many decimals it has.

A metric with an index is a family of numbers, stored in the long table of metrics under names such as
`bleu[10-20]`, `gate[12]` or `attention[3,7]`: one or two indices, each a number, a range or a word.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity; `higher` says which way is better, None where neither is."""

    name: str
    title: str  # as a caption begins
    higher: bool | None
    decimals: int
    axis: str = ""  # what it is along an axis, where the title says more than that
    indices: tuple[str, ...] = ()  # what each index of a family is
    stepped: bool = False  # whether it moves in the steps of the task's curriculum
    quantiles: bool = False  # whether the members of the family stand for many more values
    probe: bool = False  # whether it is measured inside of trained models, and not by the trials

    def show(self, value: float) -> str:
        """The number as tables print it: thousands grouped, a true minus, never minus zero."""
        return format(value, f"z,.{self.decimals}f").replace("-", "−")


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="max_length",
            title="Longest length with 100 % accuracy",
            higher=True,
            decimals=1,
            stepped=True,
        ),
        Metric(name="accuracy", title="Accuracy, share that is right", higher=True, decimals=3),
        Metric(name="best_accuracy", title="Highest accuracy, share of sequences", higher=True, decimals=3),
        Metric(
            name="solved_epochs",
            title="Epochs until all test sequences were right",
            higher=False,
            decimals=0,
            axis="Epochs until solved",
        ),
        Metric(name="loss", title="Loss, nats a token", higher=False, decimals=4),
        Metric(name="dev_loss", title="Loss on the dev split, nats a token", higher=False, decimals=4),
        Metric(name="dev_bpc", title="Bits per character on the dev split", higher=False, decimals=3),
        Metric(name="dev_perplexity", title="Perplexity per word on the dev split", higher=False, decimals=1),
        Metric(name="test_loss", title="Loss on the test split, nats a token", higher=False, decimals=4),
        Metric(
            name="dev_accuracy", title="Accuracy on the dev split, share of symbols", higher=True, decimals=3
        ),
        Metric(
            name="test_accuracy",
            title="Accuracy on the test split, share of symbols",
            higher=True,
            decimals=3,
        ),
        Metric(
            name="test_exact",
            title="Test sequences written without a fault, as a share",
            higher=True,
            decimals=3,
            axis="Share without a fault",
        ),
        Metric(name="test_bpc", title="Bits per character on the test split", higher=False, decimals=3),
        Metric(
            name="test_perplexity", title="Perplexity per word on the test split", higher=False, decimals=1
        ),
        Metric(
            name="length",
            title="Length at the last epoch, tokens",
            higher=True,
            decimals=1,
            axis="Length, tokens",
            stepped=True,
        ),
        Metric(name="tokens_per_s", title="Tokens a second", higher=True, decimals=0),
        Metric(
            name="f1",
            title="Labelled brackets, F1 over sentences with a tree",
            higher=True,
            decimals=1,
            axis="F1",
        ),
        Metric(
            name="f1_of_all",
            title="Labelled brackets, F1 over all sentences",
            higher=True,
            decimals=1,
            axis="F1",
        ),
        Metric(name="precision", title="Precision of labelled brackets", higher=True, decimals=1),
        Metric(name="recall", title="Recall of labelled brackets", higher=True, decimals=1),
        Metric(
            name="tree_share",
            title="Sentences with a well-formed tree, as a share",
            higher=True,
            decimals=3,
            axis="Share with a tree",
        ),
        Metric(name="bleu", title="BLEU", higher=True, decimals=1, indices=("Source length, words",)),
        Metric(
            name="attention",
            title="Weight of attention",
            higher=None,
            decimals=2,
            indices=("Output position", "Input position"),
            probe=True,
        ),
        Metric(
            name="memory_change",
            title="Cosine of consecutive memory states",
            higher=None,
            decimals=3,
            indices=("Sample",),
            quantiles=True,
            probe=True,
        ),
        Metric(
            name="theta",
            title="Share of steps at which standard attention changes the memory more",
            higher=None,
            decimals=2,
            indices=("Standard attention",),
            probe=True,
        ),
        Metric(
            name="gamma",
            title="Product of the forget gates so far",
            higher=None,
            decimals=3,
            indices=("Step",),
            probe=True,
        ),
        Metric(
            name="forget_gate",
            title="Activation of the forget gate",
            higher=None,
            decimals=3,
            indices=("Step", "Sample"),
            quantiles=True,
            probe=True,
        ),
        Metric(
            name="probed",
            title="Sequences of the probe",
            higher=None,
            decimals=0,
            indices=("Count",),
            probe=True,
        ),
    )
}
"""Every metric by its name."""


PROBED = "probed[asked]"
"""What is stored of every model that was probed, whatever else could be measured of it."""


def family(name: str) -> str:
    """The metric's name without its index: `bleu` of `bleu[10-20]`."""
    return name.partition("[")[0]
