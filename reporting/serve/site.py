"""The web pages about a store.

Names in an address are only looked up in the store; they never become a path or are evaluated.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ... import __version__
from ...storage import Store
from ...studies.schema.factors import one_line
from ...studies.text.errors import StudyError
from ..page.report import make_environment
from .sections import SECTIONS, Section, View, bar, headline, trial_section
from .store_reader import StoreNow, StoreReader
from .study_now import StudyNow
from .trials import trials_now

_FOLDER = Path(__file__).parent
_TEMPLATES = make_environment(_FOLDER / "templates", _FOLDER.parent / "page" / "templates")
_TEMPLATES.filters["address"] = lambda view, **changes: view.address(**changes)

MAX_KEPT = 4096
"""The maximum number of cached texts: sections of pages, and headlines of studies."""

HEADLINES_S = 1.0
"""The seconds after which the list of studies is sent with the headlines that are ready.

An open page gets the others when it asks again.
"""

REFRESH_FACTOR, MAX_AGE_S = 10, 60.0
"""A text is kept for at least this multiple of the time that it took to make, up to a limit in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePage:
    """A page: its title, the name of its study, and the name, title and HTML of each section."""

    title: str
    name: str = ""
    sections: Sequence[tuple[str, str, str]]
    status: int = 200


def _error_page(title: str, words: str) -> SitePage:
    shown = _TEMPLATES.get_template("missing.html").render(words=words)
    return SitePage(title=title, sections=[("missing", "Error", shown)], status=404)


class _Kept(NamedTuple):
    text: str
    depends: object
    fresh_until: float


class Site:
    """The web pages about one store.

    Texts are cached, and made one after the other, so that pages slow down a machine that trains only a
    little. Texts that take long to make are kept longer.
    """

    def __init__(self, store: Store, look_s: float | None = None) -> None:
        """Open a store, and read it at most every `look_s` seconds.

        By default, a store in a bucket is read less often than one in a folder.
        """
        self.look_s = look_s or store.files.place.look_s
        self._store, self._reader = store, StoreReader(store, self.look_s)
        self._making = threading.Lock()  # matplotlib draws one figure at a time
        self._kept: dict[Hashable, _Kept] = {}

    def page(self, words: Sequence[str], query: Mapping[str, str]) -> SitePage:
        """Return the page at an address, which is given by the words of its path."""
        now = self._reader.current()
        view = View(metric=query.get("metric"), order=query.get("order"))
        match words:
            case []:
                return SitePage(title="Studies", sections=[("studies", "Studies", self._studies(now))])
            case ["study", name, *rest] if isinstance(found := now.studies.get(name), StudyNow):
                if not rest:
                    return self._study_page(found, found.study.title, SECTIONS, view)
                if rest[0] == "trial" and rest[1:] and rest[1] in trials_now(found):
                    section = trial_section(rest[1])
                    return self._study_page(found, section.title, [section], view)
            case ["study", name] if isinstance(error := now.studies.get(name), StudyError):
                return _error_page(f"{name} cannot be read", str(error))
            case _:
                pass
        return _error_page("Not found", "No page has this address.")

    def render(self, page: SitePage) -> str:
        """Return the HTML of a page, with the frame around its sections."""
        return _TEMPLATES.get_template("shell.html").render(
            page=page,
            sections=page.sections,
            place=self._store.place,
            read_at=self._reader.current().read_at,
            version=__version__,
        )

    def _study_page(self, now: StudyNow, title: str, sections: Sequence[Section], view: View) -> SitePage:
        made: list[tuple[str, str, str]] = []
        for each in sections:

            def make(section: Section = each) -> str:
                values = section.values(now, self._reader.snapshot(now.study, now.rows), view)
                return (
                    "" if values is None else _TEMPLATES.get_template(f"{section.name}.html").render(values)
                )

            text = self._text(
                (now.study.name, each.title, view), each.depends(now, view), make, each.min_age_s
            )
            made += [(each.name, each.title, text)] if text else []
        return SitePage(title=title, name=now.study.name, sections=made)

    def _text(self, key: Hashable, depends: object, make: Callable[[], str], min_age_s: float = 0.0) -> str:
        """Return the cached text for a key. It is made again if its inputs have changed."""
        known = self._kept.get(key)
        if known is not None and (known.depends == depends or time.monotonic() < known.fresh_until):
            return known.text
        with self._making:
            known = self._kept.get(key)  # another thread may have made it while this one waited
            if known is None or known.depends != depends:
                begun = time.monotonic()
                text, now = make(), time.monotonic()
                rest = max(min_age_s, min(REFRESH_FACTOR * (now - begun), MAX_AGE_S))
                known = self._kept[key] = _Kept(text, depends, now + rest)
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return known.text

    def _studies(self, now: StoreNow) -> str:
        lines: list[dict[str, object]] = []
        for name, found in now.studies.items():
            if isinstance(found, StudyError):
                lines.append({"name": name, "error": str(found), "last": ""})
                continue
            moments = [each.note.saved_at for each in found.begun if each.note]
            lines.append(
                {
                    "name": name,
                    "title": one_line(found.study.title),
                    "error": "",
                    "progress": found,
                    "bar": bar(found),
                    "last": max([*moments, *found.outcomes["finished"]], default=""),
                }
            )
        lines.sort(key=lambda each: str(each["last"]), reverse=True)
        end = time.monotonic() + HEADLINES_S
        for line in lines:
            found = now.studies[str(line["name"])]
            if isinstance(found, StudyNow):
                line["headline"] = self._headline(found, end)
        return _TEMPLATES.get_template("studies.html").render(studies=lines)

    def _headline(self, now: StudyNow, end: float) -> str | None:
        """Return a study's headline; after the time `end` only if there is one, else None."""
        name = now.study.name
        if time.monotonic() >= end:
            return known.text if (known := self._kept.get(name)) else None
        return self._text(name, now.rows, lambda: headline(self._reader.snapshot(now.study, now.rows)))
