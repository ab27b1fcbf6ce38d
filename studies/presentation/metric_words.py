"""Titles of metrics, and sentences about them, that fit the shown trials.

The plain title of a metric fits all settings. If trials agree in the relevant settings, a template in
`metrics.toml` is more specific: "Longest length with at least 95 % accuracy" with `grow_at = 0.95`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..catalog.metrics import Metric, metric_family, metric_index
from ..catalog.tasks import (
    DEV_SEQUENCES,
    TEST_SETS,
    AlgorithmicSettings,
    GeneratedTask,
    LabelledSettings,
    LanguageModelSettings,
    LengthTask,
    ParsingSettings,
    SentencePairSettings,
    SyntheticTask,
    TaskKind,
    TaskSettings,
    TranslationSettings,
)
from ..resolve.trial import Kind
from ..schema.settings import TrialSettings
from ..text.units import listed

_MAX_LISTED = 3
"""The maximum number of lengths, and of differing values, that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The meaning of a metric in one trial, in words.

    `title` is the metric's title with these settings, `heading` the text that follows the metric's name in
    headings, and `details` has the settings on which the metric depends. `short` is a shorter title for an
    axis, if there is one. `pooled` has the words for the test sets that the metric covers together, if there
    are several, and the task. `shows_index` is true if the title contains the index of a family's member in
    words. `caution` says why values of several models cannot be compared, if they cannot.
    """

    title: str
    short: str = ""
    heading: str = ""
    details: tuple[tuple[str, str], ...] = ()
    pooled: tuple[str, str] | None = None
    shows_index: bool = False
    caution: str = ""


def spelled_out(name: str) -> str:
    """Return the name of a metric as words for a heading in print: `Dev BLEU` for `dev_bleu`."""
    family, bracket, index = name.partition("[")
    words = " ".join(_SPELLINGS.get(word, word) for word in family.split("_"))
    return f"{words[:1].upper()}{words[1:]}{bracket}{index}"


_SPELLINGS = {
    **{word: word.upper() for word in ("bpc", "bleu", "ece", "f1", "lm", "mae")},
    **{"flops": "FLOPs", "mib": "MiB", "r2": "R²"},
}


def with_true_title(
    metric: Metric, settings: Collection[TrialSettings], *, over_index: bool = False
) -> tuple[Metric, str]:
    """Return the metric with a title that is true for all these trials.

    Also return a suffix for column headings. A heading consists of the metric's name and this suffix, which
    is "" if the trials differ. With `over_index`, the title leaves out the index of a metric such as
    `bleu[10-20]`, which is then an axis.
    """
    if metric.index_titles == (TEST_SETS,):
        properties = {each.task.spec.test_sets_title for each in settings}  # in which test sets differ
        metric = replace(metric, index_titles=tuple(properties)) if len(properties) == 1 else metric
    meanings = _meanings(metric, settings, over_index=over_index)
    titles, headings = {(each.title, each.short) for each in meanings}, {each.heading for each in meanings}
    is_told = len(titles) == 1 and all(each.shows_index for each in meanings)
    index = "" if is_told else _index_words(metric)
    title, short = titles.pop() if len(titles) == 1 else (metric.title, metric.axis_title)
    axis = metric.axis_title if title == metric.title else short
    return (
        replace(metric, title=title + index, axis_title=axis and axis + index),
        headings.pop() if len(headings) == 1 else "",
    )


def describe_metrics(measured: Mapping[Metric, Collection[TrialSettings]]) -> tuple[str, ...]:
    """Return a sentence for each metric whose meaning depends on the settings in which it is measured.

    A last sentence names the settings in which the trials of a metric differ.
    """
    depending = {metric: settings for metric, settings in measured.items() if metric.titles}
    titles = {metric.name: with_true_title(metric, each)[0].title for metric, each in depending.items()}
    sentences = [f"{name}: {in_sentence(title)}." for name, title in titles.items()]
    difference = difference_sentence(depending)
    return (*sentences, *([difference] if difference else []))


def in_sentence(title: str) -> str:
    """Return a title with the capitalisation for the middle of a sentence."""
    return title if title[:2].isupper() else title[:1].lower() + title[1:]


def difference_sentence(measured: Mapping[Metric, Collection[TrialSettings]]) -> str:
    """Return a sentence on metrics that are measured differently in some trials; "" if none is."""
    parts = dict[str, None]()
    for metric, settings in measured.items():
        values: dict[str, dict[str, None]] = {}
        meanings = _meanings(metric, settings)
        for meaning in meanings:
            for name, value in meaning.details:
                values.setdefault(name, {})[value] = None
        several = [f"{name} {_listed(tuple(each))}" for name, each in values.items() if len(each) > 1]
        if "lengths" not in values or len(values["lengths"]) == 1:
            several += _pooled_words(meanings)
        if several:
            parts[f"{metric.name} ({'; '.join(several)})"] = None
    return f"Measured differently in some trials: {', '.join(parts)}." if parts else ""


def caution_sentence(metrics: Iterable[Metric], settings: Collection[TrialSettings]) -> str:
    """Return a sentence on metrics by which several models cannot be compared; "" if all can be."""
    if len({each.model.recipe for each in settings}) == 1:
        return ""
    cautions = dict[str, list[str]]()
    for metric in metrics:
        for caution in {each.caution for each in _meanings(metric, settings)} - {""}:
            cautions.setdefault(caution, []).append(metric.name)
    return " ".join(f"{', '.join(names)}: {caution}." for caution, names in cautions.items())


def _pooled_words(meanings: Iterable[Meaning]) -> Iterator[str]:
    pooled = dict.fromkeys(meaning.pooled for meaning in meanings)
    groups = dict[str, list[str]]()
    for sets, task in filter(None, pooled):
        groups.setdefault(sets, []).append(task)
    for sets, tasks in groups.items() if None in pooled else ():
        yield f"{sets} together in {listed(tasks)}"


def _meanings(
    metric: Metric, settings: Iterable[TrialSettings], *, over_index: bool = False
) -> tuple[Meaning, ...]:
    if not metric.titles:
        return ()
    kinds = dict.fromkeys(map(Kind, settings))  # seeds change no meaning
    return tuple(dict.fromkeys(_meaning(metric, each, over_index=over_index) for each in kinds))


def _index_words(metric: Metric) -> str:
    """Return the words for a metric's index: `, source length 10-20` for `bleu[10-20]`."""
    index = metric_index(metric.name)
    if not index:
        return ""
    names = (title.partition(",")[0] for title in metric.index_titles)
    pairs = zip(names, index.split(","), strict=False)
    return "".join(f", {name[:1].lower()}{name[1:]} {value}" for name, value in pairs)


def _listed(values: Sequence[str]) -> str:
    if len(values) > _MAX_LISTED:
        return f"of {len(values)} values from {values[0]} to {values[-1]}"
    return " or ".join(values)


@lru_cache(maxsize=1 << 15)  # the sentences of a table ask for the same trials several times
def _meaning(metric: Metric, kind: Kind, *, over_index: bool) -> Meaning:
    settings = kind.settings
    facts = _facts(metric, settings, over_index=over_index)
    template = next((each for each in metric.titles if not each.when or facts.get(each.when)), None)
    if template is None:
        return Meaning(title=metric.title)
    filled = facts | {"title": metric.title, "axis_title": metric.axis_title}
    return Meaning(
        title=template.title.format_map(filled),
        short=template.short.format_map(filled),
        heading=template.heading.format_map(filled),
        details=tuple((name, facts[name]) for name in template.depends if name in facts),
        pooled=(facts["pooled"], settings.task.name) if "pooled" in facts else None,
        shows_index="algorithmic" in facts,
        caution=template.caution,
    )


def _facts(metric: Metric, settings: TrialSettings, *, over_index: bool) -> dict[str, str]:
    train, task = settings.train, settings.task
    is_regression = task.spec.kind is TaskKind.REGRESSION
    facts = {
        "unit": _loss_unit(task),
        "of": "sequences" if is_regression else "symbols",
        "regression": "yes" if is_regression else "",
        "transduction": "yes" if task.spec.kind is TaskKind.TRANSDUCTION else "",
        "batch_size": f"{train.batch_size}",
        "label_smoothing": f"{train.label_smoothing:g}",
        "smoothed": f", labels smoothed by {train.label_smoothing:g}" if train.label_smoothing else "",
        **dict(_tokens(task)),
        **_search_facts(task),
    }
    if isinstance(task, GeneratedTask) and (guesses := _guesses(metric, task, over_index=over_index)):
        facts["guess"] = guesses
    if train.curriculum is not None:
        percent, is_all = f"{100 * train.curriculum.grow_at:g} %", train.curriculum.grow_at == 1
        facts |= {
            "curriculum": "yes",
            "grow_at": f"{train.curriculum.grow_at:g}",
            "at_least": percent if is_all else f"at least {percent}",
            "above": "" if is_all else f"≥ {percent}",
            "sequences": f"{getattr(task, 'dev_examples', None) or train.batch_size}",
        }
    family = metric_family(metric.name)
    split, is_split = family.partition("_")[0], family in _SPLIT_SCORES
    if is_split and isinstance(task, AlgorithmicSettings):
        facts |= _length_facts(metric, settings, task, over_index=over_index)
    elif is_split:
        facts["where"] = f"on the {split} split"
        names = task.test_names if split == "test" and isinstance(task, SyntheticTask) else ()
        is_pooled = len(names) > 1 and not over_index and family == metric.name
        sets = f"{len(names)} test sets"
        if isinstance(task, LengthTask) and names == tuple(map(str, task.test_lengths)):
            sets = _length_words(task.test_lengths, is_range=False)
            facts |= {"lengths": sets.removeprefix("lengths ")} if len(names) > 1 else {}
        if is_pooled:
            facts["where"] += f", {sets} together"
            facts["pooled"] = sets
    return facts


def _guesses(metric: Metric, task: GeneratedTask, *, over_index: bool) -> str:
    """Return the accuracies of a guess on the sequences of a metric, such as "0.25 to 0.5"; "" if unknown."""
    split = "test" if metric.name.startswith("test_") else "dev"
    names = [metric_index(metric.name)]
    if over_index and split == "test" and isinstance(task, SyntheticTask):
        names = list(task.test_names)
    found = [task.guessed_value(f"{split}_accuracy", name) for name in names]
    known = sorted(each for each in found if each is not None)
    return " to ".join(dict.fromkeys(f"{each:.3g}" for each in known[:1] + known[-1:]))


_SPLIT_SCORES = {
    f"{split}_{kind}"
    for split in ("dev", "test")
    for kind in ("loss", "accuracy", "exact", "scaled_accuracy")
}
"""The scores of generated tasks that depend on the sequence lengths."""


def _length_facts(
    metric: Metric, settings: TrialSettings, task: AlgorithmicSettings, *, over_index: bool
) -> dict[str, str]:
    """Return texts for a title: how many sequences there are, and of which length."""
    split, index = metric.name.partition("_")[0], metric_index(metric.name)
    is_test = split == "test"
    lengths = task.test_lengths if is_test else settings.train.lengths or ()
    words = f"length {index}" if index else _length_words(lengths, is_range=not is_test)
    counted = task.test_examples if is_test else task.dev_examples or DEV_SEQUENCES
    return {
        "algorithmic": "yes",
        "where": f"on {split} sequences" + (f" of {words}" if words and not over_index else ""),
        "lengths": words.removeprefix("lengths "),
        "sequences": f"{counted}",
    }


def _search_facts(task: TaskSettings) -> dict[str, str]:
    if not isinstance(task, SentencePairSettings):
        return {}
    penalties = (("length penalty", task.length_penalty), ("coverage penalty", task.coverage_penalty))
    search = [f"beam {task.beam}", *(f"{name} {value:g}" for name, value in penalties if value)]
    search += ["sizes estimated"] if task.sizes == "estimated" else []
    search += ["trees preferred"] if isinstance(task, ParsingSettings) and task.prefer_trees else []
    is_lower = isinstance(task, TranslationSettings) and task.tokens == "words"
    return {
        "search": ", ".join(search),
        "beam": "" if task.beam == 1 else f"beam {task.beam}",
        "references": "in lower-case words" if is_lower else "as written",
        "of_words": " of lower-case words" if is_lower else "",
    }


def _loss_unit(task: TaskSettings) -> str:
    if isinstance(task, GeneratedTask) and type(task).losses is not GeneratedTask.losses:
        return "as the task defines it"
    match task.spec.kind:
        case TaskKind.REGRESSION:
            standardised = " of standardised numbers" if isinstance(task, LabelledSettings) else ""
            return f"mean squared error{standardised}"
        case TaskKind.CLASSIFICATION:
            return "nats per sequence"
        case _:
            return "nats per token"


def _tokens(task: TaskSettings) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the settings that decide whether two losses can be compared."""
    if isinstance(task, LanguageModelSettings | SentencePairSettings | LabelledSettings):
        pieces = getattr(task, "pieces", None)
        tokens = getattr(task, "tokens", "")
        yield "tokens", f"{tokens} of {pieces}" if tokens in ("bpe", "byte_bpe") else tokens
    if isinstance(task, LanguageModelSettings):
        yield "batching", f"{task.batching}{', separate documents' * task.separate_documents}"
        if task.by_line:
            yield "longest", f"{task.longest}"


def _length_words(lengths: Sequence[int], *, is_range: bool) -> str:
    """Name lengths for a title: `length 40`, `lengths 40, 60 and 80`, `lengths 41 to 500`."""
    if len(set(lengths)) < 2:
        return "".join(f"length {each}" for each in set(lengths))
    first, last = lengths[0], lengths[-1]
    if is_range or len(lengths) == last - first + 1:
        return f"lengths {first} to {last}"
    if len(lengths) <= _MAX_LISTED:
        return f"lengths {listed(lengths)}"
    return f"{len(lengths)} lengths from {first} to {last}"
