"""The web pages about a store.

A page is divided into parts, and each part is made once for all viewers. Names in an address are only looked
up in the store; they never become a path or are evaluated.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from ... import __version__
from ...storage import Store
from ...studies.schema.factors import one_line
from ...studies.text.errors import StudyError
from ..page.section_results import shown_curves
from .progress import study_progress
from .sections import (
    DRAWING,
    SECTIONS,
    TEMPLATES,
    Section,
    StudyValues,
    View,
    bar,
    headline,
    render_section,
    trial_section,
)
from .store_reader import LOOK_AT_BUCKET_S, LOOK_S, StoreNow, StoreReader, StudyNow
from .trial_page import has_trial

_STATIC = Path(__file__).with_name("static")
_PAGE_STYLE = Path(__file__).parents[1] / "page" / "templates" / "style.css"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

MAX_KEPT = 256
"""The maximum number of cached page parts."""

MAX_HEADLINES = 4096
"""The maximum number of cached headlines in the list of studies, which needs all of them at once."""

HEADLINES_S = 1.0
"""The seconds after which the list of studies is sent with the headlines that are ready.

An open page gets the others as events.
"""

REFRESH_FACTOR, MAX_AGE_S = 10, 60.0
"""A part is kept for at least this multiple of the time that it took to make, up to a limit in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The response to a request: status, media type and content.

    The content is an iterator, so that it can be sent while it is made. `fixed` means that the same address
    always gives the same content.
    """

    content: Iterator[bytes]
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a page that can change. A function makes its HTML."""

    id: str
    render: Callable[[], tuple[str, str]]
    """Returns the part's version and markup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """A page that changes with the store, as a list of parts.

    `title`, `name` and `sections` fill the frame around them.
    """

    title: str
    name: str
    sections: tuple[Section, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedText:
    """A cached text.

    `depends` are the inputs that it was made from. It is not made again before `fresh_until`.
    """

    text: str
    version: str
    depends: object
    fresh_until: float


class TextCache:
    """A cache of texts, renewed when their inputs change.

    Texts that take long to make are kept longer, so that pages slow down a machine that trains only a little.
    """

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._made: OrderedDict[Hashable, CachedText] = OrderedDict()

    def get(
        self, key: Hashable, depends: object, make: Callable[[], str], min_age_s: float = 0.0
    ) -> CachedText:
        """Return the text for a key.

        If the inputs of the text have changed, make it again.

        A text is made again at most every `min_age_s` seconds.
        """
        with self._lock:
            known = self._made.get(key)
        begun = time.monotonic()
        # without the lock, so that other texts need not wait for this one
        if known is None or (known.depends != depends and begun >= known.fresh_until):
            text = make()
            now = time.monotonic()
            known = CachedText(
                text=text,
                version=sha256(text.encode()).hexdigest()[:12],
                depends=depends,
                fresh_until=now + max(min_age_s, min(REFRESH_FACTOR * (now - begun), MAX_AGE_S)),
            )
        with self._lock:
            self._made[key] = known
            self._made.move_to_end(key)
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return known

    def known(self, key: Hashable) -> str | None:
        """Return the cached text for a key, even if its inputs have changed; None without one."""
        with self._lock:
            kept = self._made.get(key)
        return kept and kept.text


class Site:
    """The web pages about one store."""

    def __init__(self, store: Store, look_s: float | None = None) -> None:
        """Open a store, and read it at most every `look_s` seconds.

        By default, a store in a bucket is read less often than one in a folder.
        """
        self.look_s = look_s or (LOOK_S if store.address is None else LOOK_AT_BUCKET_S)
        self._store, self._reader = store, StoreReader(store, self.look_s)
        self._kept, self._headlines = TextCache(MAX_KEPT), TextCache(MAX_HEADLINES)
        self._values: dict[str, StudyValues] = {}
        self._making: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        style = _PAGE_STYLE.read_bytes() + (_STATIC / "serve.css").read_bytes()
        contents = {"serve.css": style} | {
            name: (_STATIC / name).read_bytes() for name in ("live.js", "icon.svg")
        }
        self._files = {_address(name, data): (name, data) for name, data in contents.items()}
        style_file, script, icon = self._files  # in the order of `contents`
        self._file_addresses = {"style": style_file, "script": script, "icon": icon}

    def answer(self, path: str, query: Mapping[str, str]) -> Response:
        """Return the response to a request for an address."""
        if path in self._files:
            name, data = self._files[path]
            return Response(
                content=iter([data]), kind=f"{_KINDS[Path(name).suffix]}; charset=utf-8", fixed=True
            )
        match path.strip("/").split("/"):
            case ["study", study, "figure", figure] if figure.endswith(".svg"):
                return self._figure(study, figure.removesuffix(".svg")) or self._missing(path)
        page = self.live_page(path, query)
        return self._missing(path) if page is None else Response(content=self._page(page, path, query))

    def live_page(self, path: str, query: Mapping[str, str]) -> LivePage | None:
        """Return the page at an address; None if the page does not change with the store."""
        snapshot = self._reader.current()
        match path.strip("/").split("/"):
            case [""]:
                part = Part(id="studies", render=lambda: self._studies(snapshot))
                return LivePage(title="Studies", name="", sections=(), parts=(part,))
            case ["study", name] if name in snapshot.studies:
                found = snapshot.studies[name]
                if isinstance(found, StudyError):
                    return None
                sections = tuple(each for each in SECTIONS if each.applies(found))
                view = View.of_query(query)
                parts = tuple(self._part(each, found, view) for each in sections)
                return LivePage(title=found.study.title, name=name, sections=sections, parts=parts)
            case ["study", name, "trial", trial]:
                found = snapshot.studies.get(name)
                if not isinstance(found, StudyNow) or not has_trial(found, trial):
                    return None
                section = trial_section(trial)
                part = self._part(section, found, View.of_query(query))
                return LivePage(title=section.title, name=name, sections=(), parts=(part,))
            case _:
                return None

    def _part(self, section: Section, now: StudyNow, view: View) -> Part:
        key = (now.study.name, section.name, section.title, view)

        def render() -> tuple[str, str]:
            depends = section.depends(now, view)
            kept = self._made(
                self._kept,
                key,
                depends,
                now,
                lambda values: render_section(section, values, view),
                min_age_s=section.min_age_s,
            )
            return kept.version, _in_section(section.name, section.title, kept.version, kept.text)

        return Part(id=section.name, render=render)

    def _made(
        self,
        cache: TextCache,
        key: Hashable,
        depends: object,
        now: StudyNow,
        make: Callable[[StudyValues], str],
        *,
        min_age_s: float = 0.0,
    ) -> CachedText:
        """Return a cached text about a study.

        Texts about one study are made one after the other, since they share their values.
        """
        name = now.study.name

        def with_values() -> str:
            values = self._values[name] = StudyValues(now, self._values.get(name))
            return make(values)

        with self._making[name]:
            return cache.get(key, depends, with_values, min_age_s)

    def _studies(self, snapshot: StoreNow) -> tuple[str, str]:
        lines = [
            {"name": name, "error": str(found), "last": None}
            if isinstance(found, StudyError)
            else _study_line(found)
            for name, found in snapshot.studies.items()
        ]
        lines.sort(key=lambda each: str(each["last"] or ""), reverse=True)
        end = time.monotonic() + HEADLINES_S
        for line in lines:
            found = snapshot.studies[str(line["name"])]
            if not isinstance(found, StudyError):
                line["headline"] = self._headline(found, end)
        body = TEMPLATES.get_template("studies.html").render(studies=lines)
        version = sha256(body.encode()).hexdigest()[:12]
        return version, _in_section("studies", "Studies", version, body)

    def _headline(self, now: StudyNow, end: float) -> str | None:
        """Return a study's headline; after the time `end` only if there is one, else None."""
        name = now.study.name
        if time.monotonic() >= end:
            return self._headlines.known(name)
        return self._made(self._headlines, name, now.rows, now, headline).text

    def _page(self, page: LivePage, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
        """Yield the HTML of a page piece by piece. So a browser can show the first pieces early."""
        asked = urlencode(dict(query))
        yield self._head(
            title=page.title,
            name=page.name,
            sections=page.sections,
            events=f"/events{path if path != '/' else ''}{'?' if asked else ''}{asked}",
        )
        for part in page.parts:
            yield part.render()[1].encode()
        yield self._end()

    def _head(self, **values: object) -> bytes:
        given = {"name": "", "sections": (), "events": "", **values}
        shell = TEMPLATES.get_template("shell.html")
        read_at = self._reader.current().read_at
        text = shell.render(files=self._file_addresses, place=self._store.place, read_at=read_at, **given)
        return text.encode()

    def _end(self) -> bytes:
        return TEMPLATES.get_template("end.html").render(version=__version__).encode()

    def _missing(self, path: str) -> Response:
        match path.strip("/").split("/"):
            case ["study", name] if isinstance(found := self._reader.current().studies.get(name), StudyError):
                title, why = f"{name} cannot be read", f"<pre><code>{escape(str(found))}</code></pre>\n"
            case _:
                title, why = "Not found", "<p>No page has this address.</p>\n"
        body = f'{why}<p><a href="/">All studies</a></p>\n'
        return Response(content=iter([self._head(title=title), body.encode(), self._end()]), status=404)

    def _figure(self, study: str, figure: str) -> Response | None:
        now = self._reader.current().studies.get(study)
        if not isinstance(now, StudyNow):
            return None
        spec = next((each for each in shown_curves(now.study) if each.name == figure), None)
        if spec is None or not len(now.outcomes):
            return None

        def make() -> str:
            (curve,) = StudyValues(now, self._values.get(study)).inputs.curves([spec])
            with DRAWING:
                return curve.render("svg").decode()

        kept = self._kept.get((study, "figure", figure), now.rows, make)
        return Response(content=iter([kept.text.encode()]), kind=_KINDS[".svg"])


def _study_line(now: StudyNow) -> dict[str, object]:
    found = study_progress(now)
    moments = [each.note.saved_at for each in now.begun if each.note] + now.outcomes["finished"].to_list()
    return {
        "name": now.study.name,
        "title": one_line(now.study.title),
        "error": "",
        "progress": found,
        "bar": bar(found),
        "last": max(moments, default=None),
    }


def _in_section(name: str, title: str, version: str, body: str) -> str:
    section = TEMPLATES.get_template("section.html")
    return section.render(name=name, title=title, version=version, body=body)


def _address(name: str, data: bytes) -> str:
    return f"/static/{sha256(data).hexdigest()[:12]}/{name}"
