"""The web pages about a store: the list of its studies, and the page of each.

The page of a study is its report, in which the progress and the trials stand in place of the status. Names in
an address are only looked up in the store; they never become a path or are evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from ... import __version__
from ...errors import ActivememError
from ...storage import Store
from ...studies.planning.reused_trials import describe_stale
from ...studies.text.errors import StudyError
from ..page.report import Section, make_environment, report_sections
from .store_reader import StoreReader
from .study_now import StudyNow
from .trials import trial_list

_FOLDER = Path(__file__).with_name("templates")
_TEMPLATES = make_environment(_FOLDER, Path(__file__).parents[1] / "page" / "templates")
SCRIPT = (_FOLDER / "live.js").read_bytes()
"""The script that renews an open page."""

REFRESH_FACTOR, MAX_AGE_S = 10, 60.0
"""A report is kept for at least this multiple of the time that it took to make, up to a limit in seconds."""


MAX_REPORTED = 100
"""The maximum number of faults that are remembered, so that each is reported once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page: its title, its sections, and the study's name, if it has one."""

    title: str
    sections: Sequence[Section]
    name: str = ""
    status: int = 200

    @property
    def version(self) -> str:
        """Return a text that changes with the page, without the time around its sections."""
        return f'"{sha256(repr(self).encode()).hexdigest()[:16]}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    sections: list[Section]
    rows: str
    fresh_until: float


class Pages:
    """The web pages about one store.

    Reports are kept, and made one after the other, so that pages slow down a machine that trains only a
    little.
    """

    def __init__(self, store: Store, look_s: float | None, report_fault: Callable[[str], None]) -> None:
        """Open a store, and read it at most every `look_s` seconds.

        By default, the store's place decides. `report_fault` gets one line for each different fault.
        """
        self._store, self._tell, self._reported = store, report_fault, set[str]()
        self._reader = StoreReader(store, look_s or store.files.place.look_s)
        self._making = threading.Lock()  # matplotlib draws one figure at a time
        self._reports: dict[str, _Report] = {}

    def page(self, words: Sequence[str]) -> Page:
        """Return the page at an address, which is given by the words of its path.

        A fault, such as a store that cannot be read, is a page, too.
        """
        try:
            return self._page(words)
        except Exception as error:  # noqa: BLE001 -- whatever stands in a store, the server goes on
            return _error_page("This page cannot be made now", self.report_fault(error), status=503)

    def report_fault(self, error: BaseException) -> str:
        """Report a fault in one line, unless it was reported before. Return its message."""
        known = isinstance(error, ActivememError | OSError)
        told = str(error) if known else f"{type(error).__name__}: {error}"
        if told not in self._reported:
            self._reported = {*self._reported, told} if len(self._reported) < MAX_REPORTED else {told}
            self._tell(" ".join(told.split()))
        return told

    def _page(self, words: Sequence[str]) -> Page:
        studies = self._reader.current()
        match words:
            case []:
                lines = [
                    {"name": name, "error": str(found), "last": None}
                    if isinstance(found, StudyError)
                    else {"name": name, "error": "", "last": _last(found), "now": found, "bar": _bar(found)}
                    for name, found in studies.items()
                ]
                lines.sort(key=lambda each: str(each["last"] or ""), reverse=True)
                return Page(title="Studies", sections=[_section("studies", "Studies", studies=lines)])
            case ["study", name] if isinstance(found := studies.get(name), StudyNow):
                return Page(title=found.study.title, name=name, sections=self._study_sections(found))
            case ["study", name] if isinstance(found := studies.get(name), StudyError):
                return _error_page(f"{name} cannot be read", str(found), status=404)
            case _:
                return _error_page("Not found", "No page has this address.", status=404)

    def render(self, page: Page) -> str:
        """Return the HTML of a page, with the frame around its sections."""
        return _TEMPLATES.get_template("shell.html").render(
            page=page,
            sections=page.sections,
            place=self._store.place,
            read_at=datetime.now(UTC),
            version=__version__,
        )

    def _study_sections(self, now: StudyNow) -> list[Section]:
        stale = self._reader.snapshot(now.study, now.rows).status.stale
        words = describe_stale(stale) if stale else ""
        live = [
            _section("progress", "Progress", now=now, bar=_bar(now), stale=words),
            _section("trials", "Trials", **trial_list(now)),
        ]
        return [part for each in self._report(now) for part in (live if each[0] == "status" else [each])]

    def _report(self, now: StudyNow) -> list[Section]:
        """Return the sections of the report, made again if rows have changed since, but not too often."""
        name = now.study.name
        known = self._reports.get(name)
        if known is not None and (known.rows == now.rows or time.monotonic() < known.fresh_until):
            return known.sections
        if known is not None and self._making.locked():
            return known.sections  # another thread makes a report, and this viewer need not wait
        with self._making:
            known = self._reports.get(name)
            if known is None or known.rows != now.rows:
                begun = time.monotonic()
                sections = report_sections(self._reader.snapshot(now.study, now.rows))
                rest = min(REFRESH_FACTOR * (time.monotonic() - begun), MAX_AGE_S)
                known = _Report(sections=sections, rows=now.rows, fresh_until=time.monotonic() + rest)
                self._reports[name] = known
        return known.sections


def _section(name: str, title: str, **values: object) -> Section:
    return name, title, _TEMPLATES.get_template(f"{name}.html").render(values)


def _error_page(title: str, words: str, *, status: int) -> Page:
    return Page(title=title, sections=[_section("error", "Error", words=words)], status=status)


def _last(now: StudyNow) -> datetime | None:
    """Return when something of a study was stored last; None if nothing is."""
    moments = [each.note.saved_at for each in now.begun if each.note]
    return max([*moments, *now.outcomes["finished"]], default=None)


def _bar(now: StudyNow) -> list[tuple[str, float, float]]:
    """Return the parts of a progress bar of the length 100: CSS class, start and length of each."""
    counts, parts, at = now.counts, list[tuple[str, float, float]](), 0.0
    begun = 100 * now.share - 100 * now.num_ended / now.total if now.total else 0.0
    lengths = {name: 100 * counts[name] / now.total for name in ("done", "pruned", "failed") if counts[name]}
    for name, length in [*lengths.items(), ("begun", begun)]:
        parts += [(name, round(at, 2), round(length, 2))] if length > 0 else []
        at += length
    return parts
