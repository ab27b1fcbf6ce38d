r"""The check of a paper's text: unknown numbers, numbers copied by hand, and outdated generated files.

A numeral of the text is a copy if it equals a number of the paper that has a point or comma and at least
three digits, as it is now or as it was when the files were built. A line that ends in `% am: NAME …` names
the numbers that it copies, and has their current values; a line that ends in `% am:` copies none. A numeral
before a percent sign also stands for its hundredth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from glob import escape
from pathlib import Path

from ...errors import nearest_hint
from ...studies.text.errors import StudyError, StudyFault, fault_at
from ...studies.text.units import plural
from .files import (
    NUMBERS,
    incomplete_tables,
    latex_number,
    leftover_files,
    paper_files,
    unlicensed_files,
)
from .paper_file import Manuscript, PaperNumber
from .record import RECORD, read_record, with_unix_line_ends

_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*%")
_MARK = re.compile(r"%\s*am:(.*)")
_MACRO = re.compile(r"\\am\s*\{([^{}]*)\}")
# a name with an argument of a macro, such as #1, is not known
_INPUT = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}#]+)\}")
_FIGURE = re.compile(r"\\includegraphics\s*(?:\[[^\[\]]*\])?\s*\{([^{}#]+)\}")
_NUMERAL = re.compile(r"(?<![\w.])\d+(?:(?:,|\{,\}|\\,)\d{3})*(?:\.\d+)?(?!\w)")
_PERCENT = re.compile(r"(?:\\,|~|\s)*\\%")
_DEFINED = re.compile(r"\\csname am:(.+?)\\endcsname\{(.*)\}$", re.MULTILINE)
_WORD = re.compile(r"[^\s,]+")
_MIN_DIGITS = 3
"""The minimum number of digits of a number for its copies to be found without a mark."""


def check_text(paper: Manuscript, text: Path) -> list[StudyError]:
    """Check a paper's text, and return an error for each file that has faults.

    The checked files are the text, all texts that it inputs, and the generated files. Raises OSError if the
    text cannot be read.
    """
    numbers = paper.folder / NUMBERS
    built = dict(_DEFINED.findall(_read(numbers))) if numbers.is_file() else {}
    copies = _copies(paper.numbers, built)
    made, tables = paper_files(paper), incomplete_tables(paper)

    def file_fault(name: str) -> str:
        stem = "/".join(Path(name.removesuffix(".tex")).parts[-2:])
        return _missing(paper, (text.parent / name).resolve(), made) or tables.get(stem, "")

    found = {
        path: list(_faults(each, paper.numbers, copies, file_fault)) for path, each in _texts(paper, text)
    }
    if lacking := unlicensed_files(paper):
        what = f"[licences] lacks {', '.join(lacking)}: state the licence, for which compute.tex has a TODO"
        found[paper.path] = [StudyFault(message=what)]
    found[paper.folder] = [StudyFault(message=each) for each in _stale(paper, built, made)]
    return [StudyError(str(path), faults) for path, faults in found.items() if faults]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _texts(paper: Manuscript, text: Path) -> Iterator[tuple[Path, str]]:
    """Yield the path and content of a LaTeX text and of the files that it includes, except generated ones."""
    waiting, met = [text], {paper.folder.resolve()}
    while waiting:
        path = waiting.pop(0)
        if {path.resolve(), *path.resolve().parents} & met:
            continue
        met.add(path.resolve())
        written = _read(path)
        yield path, written
        for line in written.split("\n"):
            for name in _INPUT.findall(line, 0, _length(line)):
                named = (text.parent / f"{name}.tex", text.parent / name)
                waiting += [each for each in named if each.is_file()][:1]


def _length(line: str) -> int:
    found = _COMMENT.search(line)
    return found.end() - 1 if found else len(line)


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
    text: str,
    numbers: Mapping[str, PaperNumber],
    copies: Mapping[str, tuple[str, str]],
    file_fault: Callable[[str], str],
) -> Iterator[StudyFault]:
    """Yield the faults of a text. `file_fault` returns the fault of a file that the text includes, or ""."""
    at = 0
    for line in text.split("\n"):
        end = _length(line)
        mark = _MARK.match(line, end)
        macros = [(each.span(1), each[1]) for each in _MACRO.finditer(line, 0, end)]
        names = _WORD.finditer(line, mark.start(1)) if mark else ()
        marked = [(each.span(), each[0]) for each in names]
        numerals = [(each.span(), _values(line, each)) for each in _NUMERAL.finditer(line, 0, end)]
        found = [(span, fault) for span, name in (*macros, *marked) if (fault := _name_fault(name, numbers))]
        for shown in (*_INPUT.finditer(line, 0, end), *_FIGURE.finditer(line, 0, end)):
            found += [(shown.span(1), fault)] if (fault := file_fault(shown[1])) else []
        own = [name for _, name in marked]
        if mark is None or (own and numbers.keys() >= set(own)):
            named = {_digits(numbers[name].text or "") for name in own}
            for span, values in numerals:
                name, message = next((copies[each] for each in values if each in copies), ("", ""))
                if name and name not in own and named.isdisjoint(values):
                    found.append((span, message.format(name, " ".join((*own, name)))))
        got = ", ".join(values[0] for _, values in numerals) or "no numeral"
        for span, name in marked:
            number = numbers.get(name)
            if number and number.text and not any(_digits(number.text) in values for _, values in numerals):
                place = numerals[0][0] if len(numerals) == 1 else span
                found.append((place, f"expected {number.text}, which is '{name}' now, got {got}"))
        yield from (fault_at(text, (at + start, at + stop), words) for (start, stop), words in found)
        at += len(line) + 1


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


def _stale(paper: Manuscript, built: Mapping[str, str], files: Mapping[str, bytes]) -> Iterator[str]:
    if not paper.folder.is_dir():
        yield "there is no such folder"
        return
    record = read_record(paper.folder)
    if record is None:
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
