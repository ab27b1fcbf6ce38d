"""The metrics that trials report: what each is, which way is better, how many decimals it has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measured quantity; `higher` says which way is better, None where neither is."""

    name: str
    title: str  # as a caption begins
    higher: bool | None
    decimals: int

    def show(self, value: float) -> str:
        """The number as tables print it: thousands grouped, a true minus, never minus zero."""
        return format(value, f"z,.{self.decimals}f").replace("-", "−")


METRICS = {
    metric.name: metric
    for metric in (
        Metric(name="max_length", title="Longest length with 100 % accuracy", higher=True, decimals=1),
        Metric(name="accuracy", title="Accuracy, share of tokens", higher=True, decimals=3),
        Metric(name="loss", title="Loss, nats a token", higher=False, decimals=4),
        Metric(name="length", title="Length at the last epoch, tokens", higher=True, decimals=1),
        Metric(name="tokens_per_s", title="Tokens a second", higher=True, decimals=0),
    )
}
"""Every metric by its name."""
