"""Plug-ins: Python files and installed packages that add what a study can name, and whose each name is.

A plug-in is a module whose import registers things: a file that the user names, or an entry point of the
group `activemem.plugins`. Packages are loaded when a name is met that is not known otherwise. What a plug-in
that breaks had registered is withdrawn, and it is told by name; nothing else is concerned.
"""

from __future__ import annotations

import hashlib
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakSet

from .diagnostics import nearest_hint
from .errors import ActivememError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGIN_GROUP = "activemem.plugins"
"""The group of the entry points of packages."""

OWN = "activemem"
"""The owner of what comes along."""

DIGEST_LENGTH = 16
"""So many digits tell one code from another; fewer are shown."""

ItemT = TypeVar("ItemT")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")
_owner: ContextVar[str] = ContextVar("owner", default=OWN)
_code: ContextVar[str] = ContextVar("code", default="")
_registries: WeakSet[OpenRegistry[object]] = WeakSet()
_installed: list[str] = []
_files: dict[Path, PluginFile] = {}
_broken: dict[str, BrokenPlugin] = {}


class PluginError(ActivememError):
    """A plug-in that cannot be loaded, or code of one that raises an exception."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPlugin:
    """Why a plug-in cannot be used; `owner` is its file or its package."""

    owner: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFile:
    """A plug-in in a file: where it was found, and its source, which is all that another machine needs."""

    path: Path
    source: str

    @property
    def module(self) -> str:
        """The name under which it is imported."""
        return "activemem_plugin_" + re.sub(r"\W", "_", self.path.stem)

    @property
    def digest(self) -> str:
        """The SHA-256 of its source, by which what it computes can be told from what other code computes."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def code(self) -> str:
        """Its name, and how its source is told from others: `mqar.py 1a2b3c4d5e6f7081`."""
        return f"{self.path.name} {self.digest[:DIGEST_LENGTH]}"


class OpenRegistry(Mapping[str, ItemT], Generic[ItemT]):
    """What a study can name of one kind: what comes along, and what plug-ins register.

    `kind` is the word for one of them. To look for a name that is not known, or at all names, loads the
    plug-ins of installed packages.
    """

    def __init__(self, kind: str, own: Mapping[str, ItemT] | None = None) -> None:
        self.kind = kind
        self._items: dict[str, ItemT] = dict(own or {})
        self._owners = dict.fromkeys(self._items, OWN)
        self._codes: dict[str, str] = {}
        _registries.add(self)  # pyright: ignore[reportArgumentType] -- of any items

    def register(self, name: str, item: ItemT) -> None:
        """Add what has that name; ValueError for what is no name, or one that is taken."""
        self._add(name, item, _owner.get())

    def add_own(self, name: str, item: ItemT) -> None:
        """Add what comes along, even if a plug-in is what causes it to be loaded."""
        self._add(name, item, OWN)

    def _add(self, name: str, item: ItemT, owner: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"expected a name of letters, digits, - and _ for a {self.kind}, got {name!r}")
        if name in self._items:
            raise ValueError(f"the {self.kind} '{name}' is already defined by {self._owners[name]}")
        self._items[name], self._owners[name] = item, owner
        if owner != OWN:
            self._codes[name] = _code.get()

    def check(self, name: str) -> str:
        """The name, if something has it; ValueError with the nearest one if nothing does."""
        if name not in self:
            raise ValueError(f"unknown {self.kind} '{name}'{nearest_hint(name, self)}")
        return name

    def owner(self, name: str) -> str:
        """Whose it is: `activemem`, a file, or a package with its version; KeyError if there is none."""
        self[name]
        return self._owners[name]

    def source(self, name: str) -> PluginFile | None:
        """The file that has registered it; None for what comes along or is of a package; KeyError."""
        owner = self.owner(name)
        return next((file for file in _files.values() if file.path.name == owner), None)

    def code(self, name: str) -> str | None:
        """The file or package that has registered it with a digest of its source; None for what comes along.

        Of a package that is the source of the module that its entry point names. Raises KeyError.
        """
        self[name]
        return self._codes.get(name)

    def withdraw(self, owner: str) -> None:
        """Remove what an owner has registered."""
        for name in [name for name, whose in self._owners.items() if whose == owner]:
            del self._items[name], self._owners[name]
            self._codes.pop(name, None)

    def __getitem__(self, name: str) -> ItemT:
        if name not in self._items:
            load_installed()
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        load_installed()
        return iter(tuple(self._items))

    def __len__(self) -> int:
        load_installed()
        return len(self._items)

    __hash__ = object.__hash__


def contract_faults(cls: object, base: type) -> list[str]:
    """What a plug-in's class lacks of what its base asks for."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return [f"expected a class derived from {base.__name__}, got {cls!r}"]
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    return [f"{cls.__name__}: expected a definition of {method}" for method in missing]


def load_plugin(path: Path | str) -> ModuleType:
    """Load a plug-in from a file, once; what it registers can be named from then on.

    Raises PluginError if there is no such file, or with what the file raised.
    """
    path = Path(path)
    try:
        return _load_file(PluginFile(path=path.resolve(), source=path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"expected a plug-in at {path}: {error}") from None


def load_plugin_files(files: tuple[PluginFile, ...]) -> None:
    """Load plug-ins that another process has loaded, from their sources."""
    for file in files:
        _load_file(file)


def loaded_files() -> tuple[PluginFile, ...]:
    """The plug-ins that were loaded from files, in that order."""
    return tuple(_files.values())


def file_of_module(module: str) -> PluginFile | None:
    """The plug-in that was loaded from a file as this module."""
    return next((file for file in _files.values() if file.module == module), None)


@contextmanager
def plugin_errors(kind: str, name: str, item: object) -> Iterator[None]:
    """Turn what plug-in code raises in a context into a PluginError with the file and line.

    `item` is the class or function that the plug-in registered. Errors of this package, and those of memory,
    which a trial is tried again for, pass as they are.
    """
    try:
        yield
    except Exception as error:
        module_name = getattr(item, "__module__", "")
        is_own = module_name.startswith(f"{OWN}.")
        if is_own or isinstance(error, ActivememError | MemoryError) or "memory" in str(error):
            raise
        module = sys.modules.get(module_name)
        file = getattr(module, "__file__", None) or kind
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        place = f"{Path(file).name}:{lines[-1]}" if lines else Path(file).name
        raise PluginError(f"{place}: {kind} '{name}': {type(error).__name__}: {error}") from error


def note_broken(owner: str, message: str) -> None:
    """Note why a plug-in cannot be used, to be told beside what misses it."""
    line = "".join(sign if sign.isprintable() else " " for sign in message)
    _broken[owner] = BrokenPlugin(owner=owner, message=line)


def broken_plugins() -> tuple[BrokenPlugin, ...]:
    """The plug-ins met so far that cannot be used."""
    return tuple(_broken.values())


def load_installed() -> None:
    """Load the plug-ins of installed packages, once; those that cannot be loaded are noted."""
    if not _installed:
        _installed.append(PLUGIN_GROUP)  # before loading, in which names are looked up
        _load_entry_points()


def _load_entry_points() -> None:
    from importlib.metadata import entry_points  # noqa: PLC0415 -- slow, and few studies need it

    for entry in sorted(entry_points(group=PLUGIN_GROUP), key=lambda entry: (entry.name, entry.value)):
        owner = describe_package(entry)
        try:
            with _registering(owner, package_code([entry])):
                entry.load()
        except PluginError as error:
            note_broken(owner, str(error))


def describe_package(entry: EntryPoint) -> str:
    """The package of an entry point, and its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def package_code(entries: Sequence[EntryPoint]) -> str:
    """The package of entry points with its version, and a digest of both and of the modules that they name.

    What these modules import counts by the version alone.
    """
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(describe_package(entry).encode() + b"\0" + _module_source(entry.module) + b"\0")
    return f"{describe_package(entries[0])} {digest.hexdigest()[:DIGEST_LENGTH]}"


def _module_source(module: str) -> bytes:
    """The file of a module; nothing where there is none. Neither it nor a package around it is imported."""
    top, *parts = module.split(".")
    try:
        found, name = find_spec(top), top
        for part in parts:
            name = f"{name}.{part}"
            found = found and PathFinder.find_spec(name, found.submodule_search_locations or [])
        return Path(found.origin).read_bytes() if found and found.origin else b""
    except (ImportError, OSError, ValueError):
        return b""


def _load_file(file: PluginFile) -> ModuleType:
    """Run a plug-in's source as a module."""
    known = _files.get(file.path)
    if known == file:
        return sys.modules[file.module]
    if known is not None or file.module in sys.modules:
        raise PluginError(f"{file.path.name}: a plug-in of that name is loaded already")
    module = ModuleType(file.module)
    module.__file__ = str(file.path)
    lines = file.source.splitlines(keepends=True)
    linecache.cache[module.__file__] = (len(file.source), None, lines, module.__file__)
    sys.modules[file.module] = module  # so that its classes can be found by their module
    try:
        with _registering(file.path.name, file.code):
            exec(compile(file.source, module.__file__, "exec"), module.__dict__)
    except PluginError:
        del sys.modules[file.module]
        raise
    _files[file.path] = file
    return module


@contextmanager
def _registering(owner: str, code: str) -> Iterator[None]:
    """A context in which what is registered is this owner's; if anything is raised, none of it stays."""
    before, code_before = _owner.set(owner), _code.set(code)
    try:
        yield
    except (Exception, SystemExit) as error:
        for registry in _registries:
            registry.withdraw(owner)
        where = _line_of(error, owner)
        raise PluginError(f"{owner}{where}: {type(error).__name__}: {error}") from error
    finally:
        _owner.reset(before)
        _code.reset(code_before)


def _line_of(error: BaseException, owner: str) -> str:
    """The line of the plug-in's own file at which it went wrong, as `:12`, if it did there."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    lines, frame = "", error.__traceback__
    while frame is not None:
        if Path(frame.tb_frame.f_code.co_filename).name == owner:
            lines = f":{frame.tb_lineno}"
        frame = frame.tb_next
    return lines
