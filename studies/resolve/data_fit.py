"""Checks that a user's corpus has enough training data for a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..catalog.tasks import LabelledSettings, LanguageModelSettings, TranslationSettings
from ..own_data.summary import MIN_PIECES, CorpusSummary
from ..schema.settings import TrialSettings
from ..text.units import plural

if TYPE_CHECKING:
    from ..own_data.own_corpus import OwnCorpus


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainLengths:
    """Lengths of a trial's training sequences, in tokens without their end.

    `num_long` sequences are longer than the task's `longest`: they are cut to it if `cut`, else left out.
    """

    num_fitting: int
    num_long: int
    cut: bool
    longest: int


def train_lengths(settings: TrialSettings, summary: CorpusSummary) -> TrainLengths | None:
    """Return the lengths of a trial's training sequences, in tokens.

    Return None for streams of text, and if the lengths depend on a vocabulary that is still to be learned.
    """
    if (limits := row_limits(settings)) is None:
        return None
    kind, most, cut = limits
    if (found := summary.lengths["train"].get(kind)) is None:
        return None
    sizes = {size: count for size, count in found.items() if cut or size > 1}
    fitting = [size for size in sizes if cut or size <= most]
    return TrainLengths(
        num_fitting=sum(sizes[size] for size in fitting),
        num_long=sum(count for size, count in sizes.items() if size > most),
        cut=cut,
        longest=min(most, max(fitting, default=0)) - (not cut),
    )


def row_limits(settings: TrialSettings) -> tuple[str, int, bool] | None:
    """Return the kind of tokens, the most of them in a row, and whether longer rows are cut, not left out.

    Return None for streams of text.
    """
    task = settings.task
    if isinstance(task, LabelledSettings):
        return task.vocabulary[0], task.longest, True
    if isinstance(task, TranslationSettings) or (isinstance(task, LanguageModelSettings) and task.by_line):
        return task.tokens, task.longest + 1, False  # with the end
    return None


def as_long_as_data(settings: TrialSettings, corpus: OwnCorpus | None) -> TrialSettings:
    """Return settings to estimate memory, with `longest` reduced to the longest of the user's training data.

    Without known lengths, the settings are unchanged.
    """
    summary, limits = corpus and corpus.summary, row_limits(settings)
    if summary is None or limits is None or not (found := summary.lengths["train"].get(limits[0])):
        return settings
    _, most, cut = limits
    longest = min(most, max(found))
    task = settings.task.model_copy(update={"longest": max(1, longest - (not cut))})
    return settings.model_copy(update={"task": task})


def data_faults(settings: TrialSettings, summary: CorpusSummary) -> Iterator[str]:
    """Yield why a trial cannot be trained on these data, and what to change."""
    task, train = settings.task, settings.train
    empty = [split for split, count in summary.rows.items() if not count]
    if summary.num_held_out and empty:
        yield (
            f"expected pairs in every split, got none in {' and '.join(empty)}: pairs whose source is also "
            "in another split are dropped; use files without shared sources"
        )
        return
    if isinstance(task, LanguageModelSettings) and task.batching == "stream":
        lengths, expected = summary.lengths["train"].get(task.tokens), train.batch_size * task.context + 1
        if lengths is not None and (found := sum(lengths.elements())) < expected:
            yield (
                f"expected at least {expected:,} tokens for {train.batch_size} rows of {task.context}, got "
                f"{found:,} in the train split: lower [train] batch_size or [task] context"
            )
    yield from _piece_faults(settings, summary)
    lengths = train_lengths(settings, summary)
    rows = train.batch_size
    if lengths is None or lengths.cut or lengths.num_fitting >= rows:
        return
    expected = f"expected at least {plural(rows, summary.unit)} for a batch of the train split"
    fitting = f"{lengths.num_fitting:,} of at most {getattr(task, 'longest', 0):,} tokens"
    yield f"{expected}, got {fitting}: lower [train] batch_size, or raise [task] longest"


_LEARNT_FROM = {
    "train": "the train split",
    "source": "the sources of the train split",
    "target": "the targets of the train split",
    "both": "both sides of the train split",
}


def _piece_faults(settings: TrialSettings, summary: CorpusSummary) -> Iterator[str]:
    task = settings.task
    pieces, is_joint = getattr(task, "pieces", None), getattr(task, "joint_vocabulary", False)
    if getattr(task, "tokens", None) != "bpe" or pieces is None:
        return
    for name, (least, most, _) in summary.pieces.items():
        if name in (("source", "target") if is_joint else ("both",)):
            continue
        what = f"no vocabulary of {pieces:,} pieces can be learnt from {_LEARNT_FROM[name]}"
        if pieces < least:
            yield f"{what}: its characters alone need {least:,}; raise [task] pieces"
        elif pieces > most:
            others = '"words"' if isinstance(task, TranslationSettings) else '"characters" or "words"'
            fewer = "lower [task] pieces, " if most > MIN_PIECES else ""
            yield f"{what}: the text yields fewer than {most:,}; {fewer}use tokens = {others}, or more text"
