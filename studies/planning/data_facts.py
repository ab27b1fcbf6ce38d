"""Notes on a study's data for its plan, such as sizes and warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from ...errors import quoted
from ..catalog.datasets import Corpus, Dataset, ParallelCorpus, Treebank, require_dataset
from ..catalog.tasks import LabelledSettings, TaskKind, TaskSettings
from ..catalog.tasks.sentence_pairs import RESERVED_SYMBOLS
from ..own_data.summary import MIN_PIECES, CorpusSummary
from ..resolve.costs import reach
from ..resolve.data_fit import row_limits, train_lengths
from ..schema.settings import TrialSettings
from ..study import Study
from ..text.units import format_bytes, listed, plural

Locate = Callable[[Dataset], str]
"""Returns where a published corpus is, or the command that downloads it."""

_MAX_CLASSES = 4


def data_notes(
    study: Study, labelled: Sequence[tuple[str, TrialSettings]], locate: Locate
) -> Iterator[tuple[str, str]]:
    """Yield notes and warnings on the data of trials, from the label and settings of each model."""
    by_task: dict[str, TrialSettings] = {}
    for _, settings in labelled:
        by_task.setdefault(settings.task.model_dump_json(), settings)
    published = dict.fromkeys(
        name for each in by_task.values() if isinstance(name := getattr(each.task, "corpus", None), str)
    )
    facts = [_published(name, locate) for name in published]
    summary = study.own_corpus.summary if study.own_corpus else None
    if summary is None:
        yield "data", "; ".join(facts)
        return
    total = plural(sum(summary.rows.values()), summary.unit)
    splits = ", ".join(f"{split} {count:,}" for split, count in summary.rows.items())
    facts += [f"{total}: {splits}", *_classes(summary), *summary.notes]
    facts += dict.fromkeys(_lengths(by_task.values(), summary))
    facts += _one_sided(labelled)
    yield "data", "; ".join(facts)
    for warning in dict.fromkeys((*summary.warnings, *_equal_by_longest(by_task.values(), summary))):
        yield "warning", warning


def _equal_by_longest(all_settings: Collection[TrialSettings], summary: CorpusSummary) -> Iterator[str]:
    """Yield warnings if `longest` makes all rows equal, or several values of it leave all rows whole."""
    whole: dict[int, None] = {}
    size = 0
    for kind, most, cut in filter(None, map(row_limits, all_settings)):
        longest = most - (not cut)
        if cut and longest <= summary.shared_start.get(kind, 0):
            yield f"all rows of train are equal once they are cut (longest = {longest:,}): raise longest"
        found = [summary.lengths.get(split, {}).get(kind) for split in summary.rows]
        if all(found) and (size := max(map(max, filter(None, found)))) <= most:
            whole[longest] = None
    if len(whole) > 1:
        unit = f"no {summary.unit} has more than {plural(size, 'token')}"
        yield f"longest = {listed(f'{each:,}' for each in sorted(whole))} give equal trainings: {unit}"


def _lengths(all_settings: Iterable[TrialSettings], summary: CorpusSummary) -> Iterator[str]:
    """Yield sentences on the vocabulary and the lengths of the data."""
    for settings in all_settings:
        task, lengths = settings.task, train_lengths(settings, summary)
        yield from _vocabulary(task, summary)
        if lengths is None or not lengths.num_fitting:
            continue
        text = f"the longest {summary.unit} in train has {plural(lengths.longest, 'token')}"
        if lengths.num_long:
            cut = f"cut to {lengths.longest:,} tokens" if lengths.cut else "left out"
            scored = (
                ", and their further labels are not trained" if task.name == "token_classification" else ""
            )
            count = f"{lengths.num_long:,} longer ones are" if lengths.num_long > 1 else "1 longer one is"
            text += f"; {count} {cut}{scored} (longest = {getattr(task, 'longest', 0):,})"
        yield text
        yield from _cut_or_not_scored(settings, summary)


def _one_sided(labelled: Iterable[tuple[str, TrialSettings]]) -> Iterator[str]:
    """Yield a sentence if only some models that label tokens see the tokens after each."""
    models: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for label, settings in labelled:
        if settings.task.spec.kind is TaskKind.TOKEN_CLASSIFICATION:
            models[reach(settings).right > 0][label] = None
    if models[True] and models[False]:
        yield f"{listed(models[False])} cannot see later tokens, the other models can"


def _cut_or_not_scored(settings: TrialSettings, summary: CorpusSummary) -> Iterator[str]:
    """Yield a sentence for dev and for test if the metrics see less than all of their tokens."""
    if (limits := row_limits(settings)) is None:
        return
    kind, most, cut = limits
    name, longest = "bytes" if kind == "characters" else kind, most - (not cut)
    for split in ("dev", "test"):
        found = summary.lengths.get(split, {}).get(kind, Counter())
        long = Counter({size: count for size, count in found.items() if size > most})
        if long:
            share = sum(long.elements()) / sum(found.elements())
            how = f", {100 * share:.2g} % of its {name}, are longer and not scored"
            how = f" {'is' if long.total() == 1 else 'are'} cut to {longest:,} tokens" if cut else how
            rows = f"{long.total():,} of {plural(found.total(), summary.unit)}"
            yield f"{split}: {rows}{how} (longest = {longest:,})"


def _vocabulary(task: TaskSettings, summary: CorpusSummary) -> Iterator[str]:
    """Yield a sentence on how many different tokens the training data have."""
    kind = task.vocabulary[0] if isinstance(task, LabelledSettings) else getattr(task, "tokens", None)
    if kind is None or kind not in summary.symbols:
        return
    found, pieces = summary.symbols[kind], getattr(task, "pieces", None)
    name = "bytes" if kind == "characters" else kind
    text = f"{found:,} different {name} in train"
    if kind == "words" and pieces is not None:
        text += f"; the vocabulary has {pieces:,}"
        enough = max(MIN_PIECES, found + RESERVED_SYMBOLS)
        if found > pieces:
            text += ", the rarer ones are unknown"
        elif pieces > 2 * enough:
            text += f", most of them unused, though they count as parameters: pieces = {enough:,} would do"
    yield text


def _classes(summary: CorpusSummary) -> Iterator[str]:
    if not summary.classes:
        return
    total = sum(summary.classes.values())
    named = [
        f"{quoted(name)} {count:,} ({100 * count / total:.0f} %)" for name, count in summary.classes.items()
    ]
    if len(named) > _MAX_CLASSES:
        named[_MAX_CLASSES - 1 : -1] = ["…"]
    yield f"{len(summary.classes):,} classes in train: {', '.join(named)}"


def _published(name: str, locate: Locate) -> str:
    dataset = require_dataset(name)
    match dataset:
        case ParallelCorpus():
            size = f"{plural(dataset.pairs, 'pair')} for training"
        case Treebank():
            size = (
                ", ".join(f"{split} {count:,}" for split, count in dataset.sentences.items()) + " sentences"
            )
        case Corpus(size_mb=float(size_mb)):
            words = f", a vocabulary of {dataset.word_vocab_size:,} words" if dataset.word_vocab_size else ""
            size = f"{format_bytes(size_mb * 1e6)} of text{words}"
        case _:
            size = dataset.title
    return f"{name}: {size}; {locate(dataset)}"
