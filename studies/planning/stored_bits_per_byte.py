"""Bits per byte of stored trials that do not have them, computed from their losses in nats per token.

The tokens of a split that a loss is averaged over, and the bytes that these spell, are known without its
text for characters, each of which is a byte, and for the words of some published corpora.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import polars as pl

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import OwnDocuments
from ..catalog.tasks import LanguageModelSettings, TaskSettings, corpus_of_task
from ..resolve.trial import task_from_json

_FAMILY = "_bits_per_byte"


def with_bits_per_byte(outcomes: pl.DataFrame, names: Collection[str]) -> pl.DataFrame:
    """Return the latest attempts with bits per byte among the final metrics, for these names."""
    splits = [name.removesuffix(_FAMILY) for name in names if name in (f"dev{_FAMILY}", f"test{_FAMILY}")]
    if not splits:
        return outcomes
    rows = outcomes.select("trial", "metrics", task=pl.col("settings").str.json_path_match("$.task"))
    scales = {text: _bits_per_nat(text) for text in rows["task"].drop_nulls().unique()}
    added = {
        trial: list(_missing(metrics or (), scales.get(task, {}), splits))
        for trial, metrics, task in rows.iter_rows()
    }
    kind = outcomes.schema["metrics"]
    more = pl.DataFrame(
        {"trial": list(added), "added": list(added.values())}, {"trial": pl.String, "added": kind}
    )
    return (
        outcomes.join(more, on="trial", how="left", maintain_order="left")
        .with_columns(metrics=pl.concat_list("metrics", "added"))
        .drop("added")
    )


def _missing(
    metrics: Collection[dict[str, object]], scales: dict[str, float], splits: Collection[str]
) -> Iterator[dict[str, object]]:
    """Yield the bits per byte that a row's final metrics lack."""
    found = {metric["name"]: metric["value"] for metric in metrics}
    for split in splits:
        name, loss = f"{split}{_FAMILY}", found.get(f"{split}_loss")
        if name not in found and isinstance(loss, float) and split in scales:
            yield {"name": name, "value": loss * scales[split]}


def _bits_per_nat(task: str) -> dict[str, float]:
    """Return for each split what a loss in nats per token is multiplied by; empty if it is not known."""
    try:
        settings = task_from_json(task)
        tokens_per_byte = _tokens_per_byte(settings)
    except (ValueError, CorpusError):  # a corpus or a task that is no longer known
        return {}
    return {split: rate / math.log(2) for split, rate in tokens_per_byte.items()}


def _tokens_per_byte(task: TaskSettings) -> dict[str, float]:
    if not isinstance(task, LanguageModelSettings) or isinstance(task.corpus, OwnDocuments):
        return {}
    if task.tokens == "characters" and task.batching != "sentences":
        return dict.fromkeys(("dev", "test"), 1.0)
    if task.tokens != "words" or task.batching != "stream":
        return {}
    return {split: words / size for split, (words, size) in corpus_of_task(task).scored_words.items()}
