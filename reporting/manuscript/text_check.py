r"""The check of a paper's text: unknown numbers, numbers copied by hand, and outdated generated files.

A numeral of the text is a copy if it equals a number of the paper, now or when the files were built, and has
a point or comma and at least three digits. A line that ends in `% am: NAME …` names the numbers that it
copies, which must be current; a line that ends in `% am:` copies none. A numeral before a percent sign may
also equal a number a hundredth as large. On a line without such a mark, a numeral with three significant
digits, without trailing zeros, is also a copy if it equals an earlier value of a number, or a number in a
table cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from glob import escape
from pathlib import Path

from ...errors import nearest_hint
from ...studies.text.errors import StudyError, StudyFault, fault_at
from ...studies.text.units import plural
from ..tables.table import CellStatus, Table
from .files import (
    NUMBERS,
    incomplete_tables,
    latex_number,
    leftover_files,
    paper_files,
    tables_by_file,
    unlicensed_files,
)
from .paper_file import Manuscript, PaperNumber
from .record import RECORD, BuildRecord, read_record, with_unix_line_ends

_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")
_MARK = re.compile(r"%\s*am:(.*)")
_MACRO = re.compile(r"\\am\s*\{([^{}]*)\}")
# a name with an argument of a macro, such as #1, is not known
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}#]+)\}")
_FIGURE = re.compile(r"\\includegraphics\s*(?:\[[^\[\]]*\])?\s*\{([^{}#]+)\}")
# a factor of a length, such as 0.485\linewidth, is no numeral of the text, nor is a part of it
_NUMERAL = re.compile(
    r"(?<![\w.])(?>\d+(?:(?:,|\{,\}|\\,)\d{3})*(?:\.\d+)?)"
    r"(?!\w|\s*\\(?:[a-zA-Z]*(?:width|height|(?:line|par|caption|display)skip)|[hv]size)(?![a-zA-Z]))"
)
# the numerals of an identifier, such as doi:10.1000/182, are none of the text
_REFERENCE = re.compile(r"\\(?:[a-zA-Z]*cite[a-zA-Z]*|url|doi|href)\*?\s*(?:\[[^\[\]]*\]\s*)*\{[^{}]*\}")
_PERCENT = re.compile(r"(?:\\,|~|\s)*\\%")
_DEFINED = re.compile(r"\\csname am:(.+?)\\endcsname\{(.*)\}$", re.MULTILINE)
_WORD = re.compile(r"[^\s,]+")
_MIN_DIGITS = 3
"""The minimum number of digits of a number for its copies to be found without a mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmatchedNumeral:
    """A numeral with decimals in a text, on a line without a mark, that equals no number of the paper."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCheck:
    """The result of a check of a paper's text.

    `faults` has an error for each file with faults. `numbers` counts the numbers that the text quotes by
    name, and `files` the generated files. `unmatched` are the numerals that nothing is known about.
    """

    faults: tuple[StudyError, ...]
    numbers: int
    files: int
    unmatched: tuple[UnmatchedNumeral, ...]


def check_text(paper: Manuscript, text: Path) -> TextCheck:
    """Check a paper's text, all texts that it inputs, and the generated files.

    Raises OSError if the text cannot be read.
    """
    numbers, record = paper.folder / NUMBERS, read_record(paper.folder)
    built = dict(_DEFINED.findall(_read(numbers))) if numbers.is_file() else {}
    made, tables = paper_files(paper, drawn=False), tables_by_file(paper)
    incomplete = incomplete_tables(tables)
    copies, guesses = _copies(paper.numbers, built), _guesses(paper.numbers, record, tables)

    def file_fault(name: str) -> str:
        stem = "/".join(Path(name.removesuffix(".tex")).parts[-2:])
        return _missing(paper, (text.parent / name).resolve(), made) or incomplete.get(stem, "")

    known = {*copies, *guesses}
    found, quoted, unmatched = dict[Path, list[StudyFault]](), set[str](), list[UnmatchedNumeral]()
    for path, lines in _texts(paper, text):
        found[path] = list(_faults(lines, paper.numbers, copies, guesses, file_fault))
        for number, line in enumerate(lines, 1):
            quoted.update(name for _, name in (*line.macros, *line.marked))
            unmatched += [
                UnmatchedNumeral(file=str(path), line=number, text=numeral[0])
                for numeral, values in line.numerals
                if line.mark is None and "." in numeral[0] and known.isdisjoint(values)
            ]
    if lacking := unlicensed_files(paper):
        what = f"[licences] lacks {', '.join(lacking)}: state the licence, for which compute.tex has a TODO"
        found[paper.path] = [StudyFault(message=what)]
    found[paper.folder] = [StudyFault(message=each) for each in _stale(paper, record, built, made)]
    return TextCheck(
        faults=tuple(StudyError(str(path), faults) for path, faults in found.items() if faults),
        numbers=len(quoted & paper.numbers.keys()),
        files=len(made),
        unmatched=tuple(unmatched),
    )


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _texts(paper: Manuscript, text: Path) -> Iterator[tuple[Path, list[_Line]]]:
    """Yield the path and lines of a LaTeX text and of the files that it includes, except generated ones."""
    waiting, met = [text], {paper.folder.resolve()}
    while waiting:
        path = waiting.pop(0)
        if {path.resolve(), *path.resolve().parents} & met:
            continue
        met.add(path.resolve())
        lines = list(map(_Line, _read(path).split("\n")))
        yield path, lines
        for line in lines:
            for name in _INPUT.findall(line.text, 0, line.end):
                named = (text.parent / f"{name}.tex", text.parent / name)
                waiting += [each for each in named if each.is_file()][:1]


class _Line:
    """A line of a text: the numbers that it quotes, in macros or in a mark at its end, and its numerals.

    Numerals of references and of a comment are left out. A numeral comes with the numbers that it can stand
    for. `end` is where a comment begins.
    """

    def __init__(self, text: str) -> None:
        comment = _COMMENT.search(text)
        self.text, self.end = text, comment.end() - 1 if comment else len(text)
        self.mark = _MARK.match(text, self.end)
        self.macros = [(each.span(1), each[1]) for each in _MACRO.finditer(text, 0, self.end)]
        names = _WORD.finditer(text, self.mark.start(1)) if self.mark else ()
        self.marked = [(each.span(), each[0]) for each in names]
        shown = _REFERENCE.sub(lambda found: " " * len(found[0]), text[: self.end])
        self.numerals = [(each, _values(text, each)) for each in _NUMERAL.finditer(shown)]


def _copies(numbers: Mapping[str, PaperNumber], built: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the name of the number and an error message for each numeral that is copied by hand.

    A numeral counts as copied by hand if it equals a number's current value, or its value when the files were
    built. The message has holes for the name, and for all names that the line must end with.
    """
    found = dict[str, tuple[str, str]]()
    now = {name: number.text or "" for name, number in numbers.items()}
    for texts, message in (
        (now, r"this is '{0}': write \am{{{0}}}, or end the line with % am: {1}"),
        (built, r"this was '{0}' when its file was built: write \am{{{0}}}"),
    ):
        for name, text in texts.items():
            digits = _digits(text)
            if re.search(r"\d[.,]\d", text) and len(digits.replace(".", "")) >= _MIN_DIGITS:
                found.setdefault(digits, (name, message))
    return found


def _guesses(
    numbers: Mapping[str, PaperNumber], record: BuildRecord | None, tables: Mapping[str, Table]
) -> dict[str, str]:
    """Return an error message for each numeral that a line without a mark may have copied.

    It is an earlier value of a number, or a measured number in a cell of a table.
    """
    found = dict[str, str]()

    def add(text: str, message: str) -> None:
        for numeral in _NUMERAL.finditer(text):
            digits = _digits(numeral[0])
            if "." in digits and len(digits.replace(".", "").strip("0")) >= _MIN_DIGITS:
                found.setdefault(digits, f"{message}, or end the line with % am:")

    for name, texts in record.numbers.items() if record else ():
        for text in texts:
            if name in numbers and text != numbers[name].text:
                add(text, f"this was '{name}' in an earlier build: write \\am{{{name}}}")
    for stem, table in tables.items():
        for row, cells in zip(table.rows, table.cells, strict=True):
            for key, cell in zip(table.keys, cells, strict=True):
                place = ", ".join(filter(None, (row, key.level, key.metric)))
                if cell.status is not CellStatus.PUBLISHED:
                    way = "name it in [numbers] if an expression gives it"
                    add(cell.full_text, f"this is in a cell of {stem} ({place}): {way}")
    return found


def _digits(text: str) -> str:
    found = _NUMERAL.search(text)
    return re.sub(r"[^\d.]", "", found[0]) if found else ""


def _values(line: str, numeral: re.Match[str]) -> tuple[str, ...]:
    """Return the numbers that a numeral can stand for, as digits: 83.4\\% is 83.4 or 0.834."""
    digits = _digits(numeral[0])
    if not _PERCENT.match(line, numeral.end()):
        return (digits,)
    return digits, f"{Decimal(digits).scaleb(-2):f}"


def _faults(
    lines: Sequence[_Line],
    numbers: Mapping[str, PaperNumber],
    copies: Mapping[str, tuple[str, str]],
    guesses: Mapping[str, str],
    file_fault: Callable[[str], str],
) -> Iterator[StudyFault]:
    """Yield the faults of a text. `file_fault` returns the fault of a file that the text includes, or ""."""
    text, at = "\n".join(line.text for line in lines), 0
    for line in lines:
        mark, end = line.mark, line.end
        numerals = [(each.span(), values) for each, values in line.numerals]
        named = (*line.macros, *line.marked)
        found = [(span, fault) for span, name in named if (fault := _name_fault(name, numbers))]
        for shown in (*_INPUT.finditer(line.text, 0, end), *_FIGURE.finditer(line.text, 0, end)):
            found += [(shown.span(1), fault)] if (fault := file_fault(shown[1])) else []
        own = [name for _, name in line.marked]
        if mark is None or (own and numbers.keys() >= set(own)):
            copied = {_digits(numbers[name].text or "") for name in own}
            for span, values in numerals:
                name, message = next((copies[each] for each in values if each in copies), ("", ""))
                if name and name not in own and copied.isdisjoint(values):
                    found.append((span, message.format(name, " ".join((*own, name)))))
                elif not name and mark is None:
                    found += [(span, guesses[each]) for each in values if each in guesses][:1]
        got = ", ".join(values[0] for _, values in numerals) or "no numeral"
        for span, name in line.marked:
            number = numbers.get(name)
            if number and number.text and not any(_digits(number.text) in values for _, values in numerals):
                place = numerals[0][0] if len(numerals) == 1 else span
                found.append((place, f"expected {number.text}, which is '{name}' now, got {got}"))
        yield from (fault_at(text, (at + start, at + stop), words) for (start, stop), words in found)
        at += len(line.text) + 1


def _name_fault(name: str, numbers: Mapping[str, PaperNumber]) -> str:
    """Return why a number cannot be quoted, being unknown, infinite, or without a value or seeds, else ""."""
    base, _, end = name.rpartition(".")
    if name not in numbers and base in numbers and end in ("low", "high", "level", "n"):
        if f"{base}.n" not in numbers:
            return f"'{name}' has no value: {base} is counted from the settings, without seeds or an interval"
        seeds = plural(int(numbers[f"{base}.n"].text or 0), "seed")
        return f"'{name}' has no value: {numbers[base].gaps or f'{base} has no interval with {seeds}'}"
    if name not in numbers:
        known = [each for each in numbers if "." in name or "." not in each]
        return f"unknown number '{name}'{nearest_hint(name, known) or '; paper.toml has no [numbers]'}"
    number = numbers[name]
    if number.text is not None and "∞" not in number.text and not number.missing_seeds:
        return ""
    lacks = f"lacks {plural(number.missing_seeds, 'seed')} of its study"
    what = "has no value" if number.text is None else "is infinite" if "∞" in number.text else lacks
    return f"'{name}' {what}{number.gaps and f': {number.gaps}'}"


def _missing(paper: Manuscript, path: Path, made: Collection[str]) -> str:
    """Return a message if a file of the paper's folder does not exist, with any ending; else ""."""
    folder = paper.folder.resolve()
    ending = path.parent.glob(f"{escape(path.name)}.*")
    if folder not in path.parents or path.is_file() or next(ending, None) is not None:
        return ""
    name = path.relative_to(folder).as_posix()
    if any(each in (name, f"{name}.tex", f"{name}.pdf") for each in made):
        return "there is no such file; paper build writes it"
    return f"there is no such file, and paper build writes none of this name{nearest_hint(name, made)}"


def _stale(
    paper: Manuscript, record: BuildRecord | None, built: Mapping[str, str], files: Mapping[str, bytes]
) -> Iterator[str]:
    if not paper.folder.is_dir():
        yield "there is no such folder"
        return
    if record is None and any(not name.endswith(".tex") for name in files):
        yield f"{RECORD} is missing or damaged, so drawings cannot be checked"
    now = {name: latex_number(number) for name, number in paper.numbers.items()}
    changed = [name for name, text in built.items() if text != now.get(name, text)]
    for name in changed:
        yield f"{NUMBERS}: '{name}' is {built[name]}, the store gives {now[name]}"
    for name, content in files.items():
        path = paper.folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif path.suffix != ".tex":
            if record and not record.fits(paper.folder, name):
                yield f"{name} and its .tex file are not from the same build"
        elif with_unix_line_ends(path.read_bytes()) != content and not (name == NUMBERS and changed):
            yield f"{name} differs from what the store gives now"
    for path in leftover_files(paper, files):
        yield f"{path.relative_to(paper.folder).as_posix()} no longer belongs to this paper"
