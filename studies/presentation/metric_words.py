"""What the settings of trials make of a metric: titles that are true of them, and in what they differ.

The titles of `metrics.toml` hold for all settings. Where trials agree in what a metric depends on, theirs
says more: "Longest length with at least 95 % accuracy" with `grow_at = 0.95`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..catalog.metrics import Metric, metric_family
from ..catalog.tasks import (
    DEV_SEQUENCES,
    AlgorithmicSettings,
    GeneratedTask,
    LabelledSettings,
    LanguageModelSettings,
    ParsingSettings,
    SentencePairSettings,
    TaskKind,
    TaskSettings,
)
from ..schema.settings import TrialSettings

_MAX_LISTED = 3
"""So many lengths, and so many values in which trials differ, are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a metric is in one trial: its title, what a heading says behind its name, and on what it depends.

    `short` is the title on an axis, if that is not the whole one. `tells_index` is true where the title has
    the index of a family's member in words.
    """

    title: str
    short: str = ""
    heading: str = ""
    details: tuple[tuple[str, str], ...] = ()
    tells_index: bool = False


def with_true_title(
    metric: Metric, settings: Iterable[TrialSettings], *, over_index: bool = False
) -> tuple[Metric, str]:
    """The metric with the titles that hold for all of these trials, and what a heading says behind its name.

    `over_index` leaves out what the index of a family says, which is then an axis.
    """
    meanings = _meanings(metric, settings, over_index=over_index)
    titles, headings = {(each.title, each.short) for each in meanings}, {each.heading for each in meanings}
    is_told = len(titles) == 1 and all(each.tells_index for each in meanings)
    index = "" if is_told else _index_words(metric)
    title, short = titles.pop() if len(titles) == 1 else (metric.title, metric.axis_title)
    axis = metric.axis_title if title == metric.title else short
    return (
        replace(metric, title=title + index, axis_title=axis and axis + index),
        headings.pop() if len(headings) == 1 else "",
    )


def describe_metrics(metrics: Iterable[Metric], settings: Collection[TrialSettings]) -> tuple[str, ...]:
    """What each metric that depends on settings is in these trials, and in what they differ."""
    depending = [metric for metric in metrics if metric_family(metric.name) in _RULES]
    titles = {metric.name: with_true_title(metric, settings)[0].title for metric in depending}
    sentences = [f"{name}: {in_sentence(title)}." for name, title in titles.items()]
    difference = difference_sentence(depending, settings)
    return (*sentences, *([difference] if difference else []))


def in_sentence(title: str) -> str:
    """A title as it is written in the middle of a sentence."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def difference_sentence(metrics: Iterable[Metric], settings: Collection[TrialSettings]) -> str:
    """In what the trials differ that each metric depends on; empty if in nothing."""
    told = dict[str, None]()
    for metric in metrics:
        values: dict[str, dict[str, None]] = {}
        for meaning in _meanings(metric, settings):
            for name, value in meaning.details:
                values.setdefault(name, {})[value] = None
        several = [f"{name} {_listed(tuple(each))}" for name, each in values.items() if len(each) > 1]
        if several:
            told[f"{metric.name} ({'; '.join(several)})"] = None
    return f"Not measured alike in all trials: {', '.join(told)}." if told else ""


def _meanings(
    metric: Metric, settings: Iterable[TrialSettings], *, over_index: bool = False
) -> tuple[Meaning, ...]:
    """What the metric is in each trial, each once."""
    rule = _RULES.get(metric_family(metric.name))
    found = (rule(metric, each, over_index) for each in settings) if rule else ()
    return tuple(dict.fromkeys(found))


def _index_words(metric: Metric) -> str:
    """The index of a member of a family, as a title ends: `, source length 10-20`."""
    index = metric.name.partition("[")[2].removesuffix("]")
    if not index:
        return ""
    names = (title.partition(",")[0] for title in metric.index_titles)
    pairs = zip(names, index.split(","), strict=False)
    return "".join(f", {name[:1].lower()}{name[1:]} {value}" for name, value in pairs)


def _listed(values: Sequence[str]) -> str:
    """Values in their order: `0.9, 0.95`, or how many there are."""
    if len(values) > _MAX_LISTED:
        return f"of {len(values)} values from {values[0]} to {values[-1]}"
    return " or ".join(values)


_Rule = Callable[[Metric, TrialSettings, bool], Meaning]


def _longest_length(metric: Metric, settings: TrialSettings, _: bool) -> Meaning:
    """The accuracy at which the length grows, and on how many sequences it is taken."""
    curriculum = settings.train.curriculum
    if curriculum is None:
        return Meaning(title=metric.title)
    percent = f"{100 * curriculum.grow_at:g} %"
    is_all = curriculum.grow_at == 1
    return Meaning(
        title=f"Longest length with {'' if is_all else 'at least '}{percent} accuracy",
        heading="" if is_all else f"≥ {percent}",
        details=(("grow_at", f"{curriculum.grow_at:g}"), ("sequences", _scored(settings))),
    )


def _scored(settings: TrialSettings) -> str:
    """How many fresh sequences an accuracy is of, where lengths grow."""
    assert isinstance(settings.task, AlgorithmicSettings), "only the algorithmic tasks have a curriculum"
    return f"{settings.task.dev_sequences or settings.train.batch_size}"


def _accuracy(metric: Metric, settings: TrialSettings, _: bool) -> Meaning:
    """Of symbols at the length that was reached, or of sequences."""
    if settings.task.spec.kind is TaskKind.REGRESSION:
        return Meaning(title="Accuracy, share of sequences that are right", details=(("of", "sequences"),))
    if settings.train.curriculum is None:
        return Meaning(title=metric.title)
    return Meaning(
        title="Accuracy at the length reached, share of symbols that are right",
        details=(
            ("of", "symbols"),
            ("grow_at", f"{settings.train.curriculum.grow_at:g}"),
            ("sequences", _scored(settings)),
        ),
    )


def _training_loss(_: Metric, settings: TrialSettings, __: bool) -> Meaning:
    """Of training, with what is done to it there."""
    train, unit = settings.train, _loss_unit(settings.task)
    at = " at the length reached" if train.curriculum else ""
    smoothed = f", labels smoothed by {train.label_smoothing:g}" if train.label_smoothing else ""
    return Meaning(
        title=f"Loss in training{at}, {unit}{smoothed}" if at or smoothed else f"Loss, {unit}",
        details=(
            ("unit", unit),
            *_tokens(settings.task),
            ("label_smoothing", f"{train.label_smoothing:g}"),
            *([("grow_at", f"{train.curriculum.grow_at:g}")] if train.curriculum else []),
        ),
    )


def _loss_unit(task: TaskSettings) -> str:
    """What the loss of a task is in."""
    if isinstance(task, GeneratedTask) and type(task).losses is not GeneratedTask.losses:
        return "as the task defines it"
    match task.spec.kind:
        case TaskKind.REGRESSION:
            standardised = " of standardised numbers" if isinstance(task, LabelledSettings) else ""
            return f"mean squared error{standardised}"
        case TaskKind.CLASSIFICATION:
            return "nats a sequence"
        case _:
            return "nats a token"


def _tokens(task: TaskSettings) -> Iterator[tuple[str, str]]:
    """What tokens are and which of them are scored, where a loss depends on it."""
    if isinstance(task, LanguageModelSettings | SentencePairSettings | LabelledSettings):
        pieces = getattr(task, "pieces", None)
        tokens = getattr(task, "tokens", "")
        yield "tokens", f"{tokens} of {pieces}" if tokens == "bpe" else tokens
    if isinstance(task, LanguageModelSettings):
        yield "batching", task.batching
        if task.batching != "stream":
            yield "longest", f"{task.longest}"


def _text_score(metric: Metric, settings: TrialSettings, _: bool) -> Meaning:
    """Bits per character and perplexity: what they are does not depend on tokens, but on what is read."""
    return Meaning(title=metric.title, details=tuple(_tokens(settings.task)))


def _padded_loss(metric: Metric, settings: TrialSettings, _: bool) -> Meaning:
    """Over positions of batches, whose size is that of training."""
    size = settings.train.batch_size
    return Meaning(
        title=f"{metric.title} of {size}", details=(("batch_size", f"{size}"), *_tokens(settings.task))
    )


def _written(metric: Metric, settings: TrialSettings, _: bool) -> Meaning:
    """Scores of outputs that a search writes."""
    task = settings.task
    if not isinstance(task, SentencePairSettings):
        return Meaning(title=metric.title)
    penalties = (("length penalty", task.length_penalty), ("coverage penalty", task.coverage_penalty))
    search = [f"beam {task.beam}", *(f"{name} {value:g}" for name, value in penalties if value)]
    if task.sizes == "estimated":
        search.append("sizes estimated")
    if isinstance(task, ParsingSettings) and task.prefer_trees:
        search.append("trees preferred")
    prefix = f"{metric.title} (sacrebleu, 13a)" if metric_family(metric.name) == "bleu" else metric.title
    return Meaning(
        title=", ".join([prefix, *search]),
        short=", ".join([metric.axis_title, *search]) if metric.axis_title else "",
        heading="" if task.beam == 1 else f"beam {task.beam}",
        details=(("search", ", ".join(search)),),
    )


def _split_score(metric: Metric, settings: TrialSettings, over_index: bool) -> Meaning:
    """A score of a split; of the algorithmic tasks that of sequences of certain lengths, or the mean."""
    split, _, kind = metric_family(metric.name).partition("_")
    task, title = settings.task, _SPLIT_TITLES[kind]
    unit = (("unit", _loss_unit(task)),) if kind == "loss" else ()
    if not isinstance(task, AlgorithmicSettings):
        is_drawn = kind == "exact"
        return Meaning(
            title=metric.title if is_drawn else title(f"on the {split} split", task),
            details=(*unit, *_tokens(task)),
        )
    index = metric.name.partition("[")[2].removesuffix("]")
    is_test = split == "test"
    lengths = task.test_lengths if is_test else settings.train.lengths or ()
    words = f"length {index}" if index else _length_words(lengths, is_range=not is_test)
    counted = task.test_sequences if is_test else task.dev_sequences or DEV_SEQUENCES
    return Meaning(
        title=title(f"on {split} sequences{f' of {words}' if words and not over_index else ''}", task),
        details=(("lengths", words.removeprefix("lengths ")), ("sequences", f"{counted}")),
        tells_index=True,
    )


def _length_words(lengths: Sequence[int], *, is_range: bool) -> str:
    """Lengths as a title names them: `length 40`, `lengths 40, 60 and 80`, `lengths 41 to 500`."""
    if len(set(lengths)) < 2:
        return "".join(f"length {each}" for each in set(lengths))
    first, last = lengths[0], lengths[-1]
    if is_range or len(lengths) == last - first + 1:
        return f"lengths {first} to {last}"
    if len(lengths) <= _MAX_LISTED:
        return f"lengths {', '.join(map(str, lengths[:-1]))} and {last}"
    return f"{len(lengths)} lengths from {first} to {last}"


def _split_loss(where: str, task: TaskSettings) -> str:
    return f"Loss {where}, {_loss_unit(task)}"


def _split_accuracy(where: str, task: TaskSettings) -> str:
    match task.spec.kind:
        case TaskKind.TRANSDUCTION:
            return f"Accuracy {where} with teacher forcing, share of symbols that are right"
        case _:
            return f"Accuracy {where}, share that is right"


def _split_exact(where: str, task: TaskSettings) -> str:
    del task
    return f"Sequences without a fault {where}, as a share"


_SPLIT_TITLES: Mapping[str, Callable[[str, TaskSettings], str]] = {
    "loss": _split_loss,
    "accuracy": _split_accuracy,
    "exact": _split_exact,
}
"""The titles of scores of a split, from where they are taken."""

_RULES: Mapping[str, _Rule] = {
    "max_length": _longest_length,
    "accuracy": _accuracy,
    "loss": _training_loss,
    **{f"{split}_{name}": _split_score for split in ("dev", "test") for name in _SPLIT_TITLES},
    **{f"{split}_loss_padded": _padded_loss for split in ("dev", "test")},
    **{
        f"{split}_{name}": _text_score
        for split in ("dev", "test")
        for name in ("bits_per_byte", "bpc", "perplexity", "perplexity_without_ends")
    },
    **dict.fromkeys(
        ("bleu", "bleu_tokenized", "f1", "f1_of_all", "precision", "recall", "tree_share"), _written
    ),
}
"""What each metric that depends on settings is in a trial."""
