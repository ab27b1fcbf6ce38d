"""Facts about a user's corpus that a plan shows: rows, classes, lengths and warnings.

These facts are not part of a trial's id. A trial reads the rows again.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import Any, NamedTuple

from ...errors import quoted
from ..catalog.datasets import source_key
from ..catalog.own_corpora import SPLITS, OwnDocuments, OwnPairs, OwnSequences, OwnText
from ..catalog.tasks import split_words
from ..catalog.tasks.sentence_pairs import BYTES
from ..text.units import listed, plural
from .rows import Row, RowKind, group_key, normal_form

KINDS = ("words", "symbols", "characters")
"""The kinds of tokens that can be counted without learning a vocabulary."""

_MAX_NAMED = 3
_OFTEN = 0.1
"""The share of dev or test lines that may also be in the training text without a warning."""

_MARKS, _RARE_SIGNS = 32, 0.0005
"""The parts of each bpe vocabulary: all bytes, fewer special marks than this, and all characters except this
rarest share."""

MIN_PIECES = 300
"""The minimum number of pieces in a study."""

_WORDS_OF_A_PIECE = 4
"""A small text gets one piece for this many distinct words, but at least one for each character."""

_MIN_UNKNOWN = 0.01
"""The share of dev or test tokens that may be missing in the training data without a warning."""

_MIN_LINE = 20  # bytes; shorter lines are alike by chance


class PieceBounds(NamedTuple):
    """The smallest, the largest and a suitable bpe vocabulary size for a text."""

    least: int
    most: int
    fair: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSummary:
    """Statistics, notes and warnings about a user's corpus.

    `rows` has the number of rows of each split, without the `num_held_out` training pairs whose source is in
    another split. `unit` is the word for a row. `classes` has the number of labels of each class in training.

    Other counts have an entry for each kind of tokens. `lengths` counts the sequences of a split by their
    length in tokens, for a pair the length of its longer side; pairs and documents have it only for train.
    `shared_start` has the number of first tokens in which all labelled training rows agree. `symbols` has the
    number of distinct training tokens. `pieces` has the bounds of a bpe vocabulary for each
    text from which a vocabulary is learnt: the split `train`, or for pairs each side or both.
    """

    unit: str
    rows: Mapping[str, int]
    num_held_out: int = 0
    classes: Mapping[str, int] = field(default_factory=dict[str, int])
    lengths: Mapping[str, Mapping[str, Counter[int]]]
    shared_start: Mapping[str, int] = field(default_factory=dict[str, int])
    symbols: Mapping[str, int] = field(default_factory=dict[str, int])
    pieces: Mapping[str, PieceBounds] = field(default_factory=dict[str, PieceBounds])
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def default_pieces(self, most: int) -> int | None:
        """Return a suitable bpe vocabulary size for a text that is too small for `most` pieces, else None."""
        bounds = self.pieces.values()
        if not bounds or min(each.most for each in bounds) >= most:
            return None
        return max(MIN_PIECES, min(each.fair for each in bounds), *(each.least for each in bounds))


OwnFacts = OwnText | OwnDocuments | OwnPairs | OwnSequences
"""The facts about a user's corpus, which are part of a trial's settings."""

Read = tuple[OwnFacts, CorpusSummary]
"""The facts about a corpus for trials, and those for a plan."""


def summarise_rows(rows: Sequence[Row], kind: RowKind, tokens: object) -> CorpusSummary:
    """Summarise labelled rows. `tokens` is the value of `[task] tokens`."""
    splits = {split: [row for row in rows if row.split == split] for split in SPLITS}
    train, kinds = splits["train"], ("symbols",) if kind.aligned else _kinds(tokens)
    labels = {split: Counter(chain.from_iterable(map(_classes, found))) for split, found in splits.items()}
    lengths, symbols = _tally(
        {split: [(row.sequence,) for row in found] for split, found in splits.items()}, kinds
    )
    return CorpusSummary(
        unit="row",
        rows={split: len(found) for split, found in splits.items()},
        classes={name: count for name, count in labels["train"].most_common() if name is not None},
        lengths=lengths,
        shared_start={kind: _shared_start([_split(row.sequence, kind) for row in train]) for kind in kinds},
        symbols={each: len(found["train"]) for each, found in symbols.items()},
        pieces=_piece_bounds({"train": (word for row in train for word in row.sequence.split())}, tokens),
        notes=tuple(
            f"{split}: {found[None]:,} of {found.total():,} tokens are not scored"
            for split, found in labels.items()
            if found[None]
        ),
        warnings=(
            *_shared(splits),
            *_groups_in_several(rows),
            *_unseen(labels),
            *_alike(labels),
            *_conflicting(train),
            *_unknown(symbols),
        ),
    )


def _classes(row: Row) -> Sequence[str | None]:
    """Return the classes of a row, none for a number."""
    if isinstance(row.target, float):
        return ()
    return row.target if isinstance(row.target, tuple) else (row.target,)


def _tally(
    splits: Mapping[str, Sequence[Sequence[str]]], kinds: Iterable[str], end: int = 0
) -> tuple[dict[str, dict[str, Counter[int]]], dict[str, dict[str, Counter[int | str]]]]:
    """Return how often each length and each symbol occurs in the rows of each split, by kinds of tokens.

    A row has one text, or the two of a pair, of which the longer one counts.
    """
    lengths: dict[str, dict[str, Counter[int]]] = {split: {} for split in splits}
    symbols: dict[str, dict[str, Counter[int | str]]] = {each: {} for each in kinds}
    for split, rows in splits.items():
        for kind, found in symbols.items():
            found[split], lengths[split][kind] = Counter(), Counter()
            for row in rows:
                texts = [_split(text, kind) for text in row]
                lengths[split][kind][max(map(len, texts)) + end] += 1
                for text in texts:
                    found[split].update(text)
    return lengths, symbols


def summarise_text(parts: Mapping[str, bytes], tokens: object) -> CorpusSummary:
    """Summarise a text, given the bytes of each split."""
    lines = {split: data.splitlines() for split, data in parts.items()}
    train = lines["train"]
    known = {line.strip() for line in train}
    warnings = []
    for split in ("dev", "test"):
        long = [line.strip() for line in lines[split] if len(line.strip()) >= _MIN_LINE]
        shared = sum(line in known for line in long)
        if parts[split] == parts["train"]:
            warnings.append(f"{split} is the same text as train")
        elif long and shared > _OFTEN * len(long):
            warnings.append(
                f"{split}: {shared:,} of {len(long):,} lines of {_MIN_LINE} bytes or more are also in train"
            )
    kinds = [each for each in _kinds(tokens) if each != "symbols"]
    lengths = {
        split: {
            each: Counter((len(line) if each == "characters" else len(line.split())) + 1 for line in found)
            for each in kinds
        }
        for split, found in lines.items()
    }
    symbols = {
        each: len(set(parts["train"]) - {10}) if each == "characters" else len(set(parts["train"].split()))
        for each in kinds
    }
    return CorpusSummary(
        unit="line",
        rows={split: len(found) for split, found in lines.items()},
        lengths=lengths,
        symbols=symbols,
        pieces=_piece_bounds({"train": parts["train"].decode(errors="replace").lower().split()}, tokens),
        warnings=tuple(warnings),
    )


def summarise_pairs(rows: Sequence[Row], tokens: object) -> CorpusSummary:
    """Summarise sentence pairs, without those whose source is also in a later split (train, dev, test)."""
    held_out: set[bytes] = set()
    kept, lost = dict[str, list[Row]](), Counter[str]()
    for split in ("test", "dev", "train"):
        keys = [(source_key(normal_form(row.sequence)), row) for row in rows if row.split == split]
        kept[split] = [row for key, row in keys if key not in held_out]
        lost[split] = len(keys) - len(kept[split])
        held_out.update(key for key, _ in keys)
    warnings = [
        f"{split}: {lost[split]:,} of {plural(lost[split] + len(kept[split]), 'pair')} left out, since their "
        f"source is also in {'test' if split == 'dev' else 'dev or test'}"
        for split in ("train", "dev")
        if lost[split]
    ]
    warnings += _groups_in_several(rows)
    sides = [row[1:3] for row in kept["train"]]
    kinds = [each for each in _kinds(tokens) if each == "words"]
    lengths, symbols = _tally({"train": sides}, kinds, end=1)
    return CorpusSummary(
        unit="pair",
        rows={split: len(kept[split]) for split in SPLITS},
        num_held_out=lost["train"],
        lengths=lengths,
        symbols={each: len(found["train"]) for each, found in symbols.items()},
        pieces=_piece_bounds(
            {
                "source": (word for source, _ in sides for word in source.split()),
                "target": (word for _, target in sides for word in target.split()),
                "both": (word for row in sides for side in row for word in side.split()),
            },
            tokens,
        ),
        warnings=tuple(warnings),
    )


def _kinds(tokens: object) -> tuple[str, ...]:
    if not isinstance(tokens, str) or "{" in tokens:
        return KINDS
    return (tokens,) if tokens in KINDS else ()


def _piece_bounds(texts: Mapping[str, Iterable[str]], tokens: object) -> dict[str, PieceBounds]:
    """Return the bounds of the bpe vocabulary for each text; none if `tokens` is not bpe."""
    return {name: _bounds_of(words) for name, words in texts.items()} if tokens == "bpe" else {}


def _bounds_of(words: Iterable[str]) -> PieceBounds:
    found = Counter(words)
    signs = Counter[str]()
    for word, count in found.items():
        signs.update(dict.fromkeys(word, count))
    # SentencePiece may leave out these characters, and spells them in bytes
    rare = _RARE_SIGNS * signs.total()
    frequent, covered = 0, 0
    for _, count in signs.most_common():
        if signs.total() - covered <= 2 * rare:
            break
        frequent, covered = frequent + 1, covered + count
    most = BYTES + len(signs) + sum(len(word) + 1 for word in found) + _MARKS
    least = BYTES + frequent
    return PieceBounds(least, most, fair=least + len(found) // _WORDS_OF_A_PIECE)


def _split(sequence: str, kind: str) -> Sequence[int | str]:
    if kind == "characters":
        return sequence.encode()
    return split_words(sequence) if kind == "words" else sequence.split()


def _shared_start(rows: Sequence[Any]) -> int:
    # all rows lie between the first and the last in alphabetical order
    ends = (min(rows), max(rows)) if rows else ()
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*ends, strict=False)))


def _alike(labels: Mapping[str, Counter[str | None]]) -> Iterable[str]:
    """Yield warnings for classes that are probably one class, or a missing value."""
    classes, alike = sum(labels.values(), Counter[str | None]()), dict[str, list[str]]()
    for name in filter(None, classes):
        alike.setdefault(_look(name), []).append(name)
    if groups := [names for names in alike.values() if len(names) > 1]:
        named = ", ".join(
            listed(_described(name, names, classes[name]) for name in names) for names in groups[:_MAX_NAMED]
        )
        more = f" and {len(groups) - _MAX_NAMED:,} more" if len(groups) > _MAX_NAMED else ""
        yield f"labels that look alike are different classes: {named}{more}"
    if missing := sum(classes[name] for name in alike.get("nan", ())):
        yield f"{plural(missing, 'label')} 'nan', a missing value in pandas: they are a class of their own"


def _look(label: str) -> str:
    """Return what labels that look alike share: a number, or letters without forms, capitals and spaces."""
    text = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    text = "".join(char for char in text if unicodedata.category(char) != "Cf")  # such as a zero-width space
    return str(float(text)).removesuffix(".0") if _NUMBER.fullmatch(text) else text


_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{0,15})?(e[+-]?[0-9]{1,2})?")


def _described(name: str, others: Sequence[str], count: int) -> str:
    """Return a label with its number of rows and, if another label is printed alike, its form."""
    same = [
        each for each in others if unicodedata.normalize("NFC", each) == unicodedata.normalize("NFC", name)
    ]
    points = f", {', '.join(_odd_characters(name)) or 'NFC'}" if len(same) > 1 else ""
    return f"'{quoted(name)}' ({count:,}{points})"


def _odd_characters(name: str) -> Iterable[str]:
    return dict.fromkeys(f"U+{ord(char):04X}" for char in name if unicodedata.combining(char))


def _conflicting(train: Sequence[Row]) -> Iterable[str]:
    """Yield a warning for equal sequences of training with different classes."""
    targets = dict[str, set[object]]()
    for row in train:
        targets.setdefault(normal_form(row.sequence), set()).add(row.target)
    count = sum(
        len(targets[normal_form(row.sequence)]) > 1 and not isinstance(row.target, float) for row in train
    )
    if count:
        yield f"train: {count:,} of {plural(len(train), 'row')} are equal to a row with another label"


def _unknown(symbols: Mapping[str, Mapping[str, Counter[int | str]]]) -> Iterable[str]:
    """Yield warnings for tokens of dev and test that are missing in training."""
    for kind, counts in symbols.items():
        for split in ("dev", "test"):
            lacking = sum(count for symbol, count in counts[split].items() if symbol not in counts["train"])
            total, name = counts[split].total(), "bytes" if kind == "characters" else kind
            if lacking and lacking >= _MIN_UNKNOWN * total:
                share = f"{lacking:,} of {total:,} {name}, {100 * lacking / total:.0f} %,"
                yield f"{split}: {share} are not in train, so the model cannot know them"


def _shared(splits: Mapping[str, Sequence[Row]]) -> Iterable[str]:
    """Yield warnings for rows of dev and test that are also in another split."""
    # also forms that only look alike, such as a ligature and its letters
    keys = {
        split: [source_key(unicodedata.normalize("NFKC", row.sequence)) for row in rows]
        for split, rows in splits.items()
    }
    for split, other in (("dev", "train"), ("test", "train"), ("test", "dev")):
        known = set(keys[other])
        if shared := sum(key in known for key in keys[split]):
            yield f"{split}: {shared:,} of {plural(len(keys[split]), 'row')} are also in {other}"


def _groups_in_several(rows: Iterable[Row]) -> Iterable[str]:
    """Yield a warning for groups with rows in several splits."""
    names, splits = dict[bytes, str](), dict[bytes, dict[str, None]]()
    for row in rows:
        if row.group:
            key = group_key(row)
            names.setdefault(key, row.group)
            splits.setdefault(key, {})[row.split] = None
    if several := [key for key, found in splits.items() if len(found) > 1]:
        named = ", ".join(
            f"'{quoted(names[key])}' ({listed(each for each in SPLITS if each in splits[key])})"
            for key in several[:_MAX_NAMED]
        )
        more = f" and {len(several) - _MAX_NAMED:,} more" if len(several) > _MAX_NAMED else ""
        verb = "has" if len(several) == 1 else "have"
        of = plural(len(splits), "group")
        yield f"{len(several):,} of {of} {verb} rows in several splits: {named}{more}"


def _unseen(labels: Mapping[str, Counter[str | None]]) -> Iterable[str]:
    """Yield warnings for classes that are missing in training, and for a training with only one class."""
    for split in ("dev", "test"):
        lacking = {
            name: count
            for name, count in labels[split].items()
            if name is not None and name not in labels["train"]
        }
        if lacking:
            names = ", ".join(quoted(name) for name in list(lacking)[:_MAX_NAMED])
            more = f" and {len(lacking) - _MAX_NAMED:,} more" if len(lacking) > _MAX_NAMED else ""
            count = f"{sum(lacking.values()):,} of {labels[split].total():,} labels"
            effect = "each adds an output that no training row uses, so these labels count as wrong"
            yield f"{split}: {count} are of classes not in train: {names}{more}; {effect}"
