"""Plug-ins: Python files and installed packages that register further names for studies.

A plug-in is a module that registers things when it is imported: a file that the user names, a file of the
folder `extras`, or an entry point of the group `activemem.plugins`. Packages are loaded when an unknown name
is looked up.
When a plug-in raises an exception, everything that it registered is removed again, and the error is reported
with its name. Other plug-ins, and other entry points of the same package, stay.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import logging
import re
import sys
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from inspect import currentframe
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

from .errors import ActivememError, argument_fault, check_arguments, nearest_hint, printable, quoted
from .inline_code import CELL, SCRIPT, UNSAVED, read_inline_code

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_log = logging.getLogger(__name__)

PLUGIN_GROUP = "activemem.plugins"
"""The group of the entry points of packages."""

OWN = "activemem"
"""The owner of items that this package registers itself."""

EXTRAS = Path(__file__).resolve().with_name("extras")
"""The folder of the plug-ins that come with this package. The name of each is that of its file."""

DIGEST_LENGTH = 16
"""The number of digits to which the digest of a source is shortened."""

SETTINGS_FILE_NAME = "activemem.toml"
"""The name of the file with the settings of a machine, which may name plug-ins for all commands."""

UNKNOWN_NAME = re.compile(
    r"\bunknown (?:block|task|metric|loss term|optimi[sz]er|schedule|callback|norm|position"
    r"|sampler|scheduler|probe|table format|kind|design|tracker|name) '([^']*)'"
)
"""The pattern of an error about a name that a plug-in may register."""

ItemT = TypeVar("ItemT")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*")


@dataclass(slots=True, eq=False)
class _Load:
    """A loaded plug-in, or one that is being loaded: its owner, its code, and what it has registered."""

    owner: str
    code: str
    registered: list[tuple[Registry[Any], str]] = field(default_factory=list)

    def undo(self) -> None:
        """Remove what the plug-in has registered."""
        for registry, name in self.registered:
            registry.unregister(name)
        self.registered.clear()


_loading: ContextVar[_Load | None] = ContextVar("loading", default=None)
_installed: list[str] = []  # once they are loaded: their group, then the owner of each
_files: dict[Path, PluginFile] = {}
_loads: dict[Path, _Load] = {}
_broken: dict[str, BrokenPlugin] = {}
_forgets: list[Callable[[], None]] = []
_registries: WeakSet[Registry[Any]] = WeakSet()


class PluginError(ActivememError):
    """Error for a plug-in, or for a part that it registers, that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenPlugin:
    """A plug-in that cannot be used: its file or package, the reason, and its entry point."""

    owner: str
    message: str
    entry: str = ""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFile:
    """A plug-in in a file: its path and its source, so that another machine can load it."""

    path: Path
    source: str

    @property
    def module(self) -> str:
        """Return the name under which the plug-in is imported."""
        return "activemem_plugin_" + re.sub(r"\W", "_", self.path.stem)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the plug-in's source, which changes whenever its code changes."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    @property
    def argument(self) -> str:
        """Return the plug-in as `--plugin` takes it: its path, or its name if it comes with this package."""
        return self.path.stem if self.is_extra else str(self.path)

    @property
    def is_extra(self) -> bool:
        """Return whether the plug-in comes with this package."""
        return self.path.parent == EXTRAS

    @property
    def code(self) -> str:
        """Return the file's name with a digest of its source, as in `mqar.py 1a2b3c4d5e6f7081`."""
        return f"{self.path.name} {self.digest[:DIGEST_LENGTH]}"


@dataclass(frozen=True, slots=True)
class _Entry(Generic[ItemT]):
    item: ItemT
    owner: str = OWN
    code: str | None = None
    run: object | None = None  # the run of a script or of a notebook's cell that registered it


class Registry(Mapping[str, ItemT], Generic[ItemT]):
    """The items of one kind that a study can name, from this package and from plug-ins.

    `kind` is the word for an item. Looking up an unknown name, or listing all names, loads the plug-ins
    of installed packages.
    """

    def __init__(self, kind: str, own: Mapping[str, ItemT] | None = None) -> None:
        self.kind = kind
        self._entries = {name: _Entry(item) for name, item in (own or {}).items()}
        _registries.add(self)

    def register(self, name: str, item: ItemT, *, own: bool = False) -> None:
        """Add an item; it belongs to the plug-in that is being loaded.

        With `own` it belongs to this package, even if a plug-in causes the import. Without a plug-in it
        belongs to the script or the notebook's cell that registers it, and may be replaced by running the
        cell again. Raise PluginError for an invalid name, and for one that is taken. A loop must not replace
        its own items: their code is the same text, so their trials would have the same ids.
        """
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise PluginError(f"expected a name of letters, digits, - and _ for a {self.kind}, got {name!r}")
        load = None if own else _loading.get()
        if load is not None:
            entry = _Entry(item, load.owner, load.code)
        else:
            entry = _Entry(item) if own else _inline(item, f"{self.kind} {name}")
        taken = self._entries.get(name)
        old, new = taken and taken.run, entry.run
        if taken is not None and not (old and new and old is not new):
            remedy = "" if taken.owner == OWN else "; load only one of the two plug-ins"
            if old and new:
                remedy = (
                    " in the same run; trials of both would have the same ids: give each a name of its own"
                )
            raise PluginError(f"the {self.kind} '{name}' is already defined by {taken.owner}{remedy}")
        self._entries[name] = entry
        if load is not None:
            load.registered.append((self, name))
        if taken is not None:
            _forget_all()

    def unregister(self, name: str) -> None:
        """Remove the item with this name if there is one."""
        self._entries.pop(name, None)

    @contextmanager
    def replaced(self, name: str, item: ItemT) -> Iterator[None]:
        """Within this context, replace or add the item of a name; at the end, restore the earlier item."""
        before = self._entries.get(name)
        self._entries[name] = _Entry(item)
        try:
            yield
        finally:
            self.unregister(name)
            if before is not None:
                self._entries[name] = before
            _forget_all()

    def check(self, name: str) -> str:
        """Return this name if an item has it; otherwise raise ValueError with the nearest name."""
        if name not in self:
            raise ValueError(f"unknown {self.kind} '{name}'{nearest_hint(name, self)}")
        return name

    def owner(self, name: str) -> str:
        """Return an item's owner, raising KeyError: `activemem`, a file, or a package with its version."""
        return self._find(name).owner

    def source(self, name: str) -> PluginFile | None:
        """Return the plug-in file that registered an item, or None if a package did; raise KeyError."""
        owner = self.owner(name)
        return next((file for file in _files.values() if file.path.name == owner), None)

    def code(self, name: str) -> str | None:
        """Return the plug-in that registered an item, with a digest of its source; None if it is built-in.

        The source of a package is that of the module which its entry point names; that of a script or a
        notebook's cell is its text. Raise KeyError.
        """
        return self._find(name).code

    def inline_codes(self) -> tuple[str, ...]:
        """Return the codes of the items that scripts and notebooks registered."""
        return tuple(each.code for each in self._entries.values() if each.run and each.code)

    def own_names(self) -> tuple[str, ...]:
        """Return the sorted names of the items that this package registered itself."""
        return tuple(sorted(name for name, entry in self._entries.items() if entry.owner == OWN))

    def _find(self, name: str) -> _Entry[ItemT]:
        if name not in self._entries:
            load_installed()
        return self._entries[name]

    def __getitem__(self, name: str) -> ItemT:
        return self._find(name).item

    def __iter__(self) -> Iterator[str]:
        load_installed()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        load_installed()
        return len(self._entries)

    def items(self) -> ItemsView[str, ItemT]:
        """Return the names with their items, as they are now. It is faster than looking up each name."""
        load_installed()
        return {name: entry.item for name, entry in self._entries.items()}.items()

    __hash__ = object.__hash__


def _inline(item: ItemT, what: str) -> _Entry[ItemT]:
    """Return the entry of an item that this package, a script or a notebook's cell registers.

    `what` is the item's kind and name.
    """
    frame = currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == OWN:
        if frame.f_code.co_name == "<module>":
            return _Entry(item)
        frame = frame.f_back
    assert frame is not None, "a script has imported this package"
    inline = read_inline_code(what, frame)
    return _Entry(item, inline.owner, f"{inline.owner} {inline.digest[:DIGEST_LENGTH]}", inline.run)


def inline_codes() -> frozenset[str]:
    """Return the codes of scripts and of notebooks' cells that have registered items in this process."""
    return frozenset(code for registry in _registries for code in registry.inline_codes())


def contract_faults(cls: object, base: type) -> list[str]:
    """Return the faults of a plug-in's class: a wrong base class, or undefined abstract methods."""
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return [f"expected a class derived from {base.__name__}, got {cls!r}"]
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    return [f"{cls.__name__}: expected a definition of {method}" for method in missing]


def check_part(faults: Collection[str]) -> None:
    """Raise PluginError with all faults of a part that is registered if there are any."""
    if faults:
        raise PluginError("; ".join(faults))


def load_plugin(plugin: Path | str) -> ModuleType:
    """Load a plug-in once, by the path of its file or by its name, and return its module.

    A name is that of a plug-in of this package, or of an installed package's entry point. Raise PluginError
    if the plug-in is missing or raises an exception. Log a warning if a file imports modules next to it,
    which trial ids do not cover.
    """
    fault = argument_fault("plugin", plugin, (str, Path), "the path or the name of a plug-in")
    check_arguments(fault, error=PluginError)
    if isinstance(plugin, str) and _NAME.fullmatch(plugin) and plugin not in extra_names():
        return _load_entry_point(plugin)
    path = plugin_path(plugin)
    try:
        file = PluginFile(path=path.resolve(), source=path.read_text(encoding="utf-8"))
        is_new, module = file.path not in _files, _load_file(file)
        if is_new and (beside := _imported_beside(file)):
            told = "%s imports %s, whose changes do not change trial ids: move this code into %s"
            _log.warning(told, path.name, ", ".join(beside), path.name)
        return module
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else error
        raise PluginError(f"expected a plug-in at {path}: {reason}") from None


def locate_plugin(plugin: str, folder: Path) -> str | Path:
    """Return a plug-in for `load_plugin`: a name unchanged, or a path, which counts from `folder`."""
    return plugin if _NAME.fullmatch(plugin) else folder / Path(plugin).expanduser()


def plugin_path(plugin: str | Path) -> Path:
    """Return the path of a plug-in's file, given as for `load_plugin`."""
    return EXTRAS / f"{plugin}.py" if plugin in extra_names() else Path(plugin)


def extra_names() -> tuple[str, ...]:
    """Return the sorted names of the plug-ins that come with this package."""
    return tuple(sorted(path.stem for path in EXTRAS.glob("*.py") if path.stem != "__init__"))


def _load_entry_point(name: str) -> ModuleType:
    """Return the module of an installed package's entry point with this name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 -- as in `load_installed`

    load_installed()
    known = {entry.name: entry for entry in entry_points(group=PLUGIN_GROUP)}
    if broken := next((each for each in _broken.values() if each.entry == name), None):
        raise PluginError(broken.message)
    if name not in known:
        places = f"among those of activemem and the entry points {PLUGIN_GROUP} of installed packages"
        near = nearest_hint(name, [*extra_names(), *known])
        raise PluginError(f"there is no plug-in '{name}': looked {places}{near}; a file is named by its path")
    return sys.modules[known[name].module]


def _imported_beside(file: PluginFile) -> list[str]:
    """Return the files and packages in the folder of a plug-in that it imports, also inside functions."""
    names = set[str]()
    for node in ast.walk(ast.parse(file.source)):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    tops = sorted({name.partition(".")[0] for name in names} - {OWN})
    places = [place for top in tops for place in (f"{top}.py", f"{top}/__init__.py")]
    return [place for place in places if (file.path.parent / place).is_file()]


def load_plugin_files(files: tuple[PluginFile, ...]) -> None:
    """Load, from their sources, the plug-ins that another process has loaded."""
    for file in files:
        _load_file(file)


def unload_plugin(path: Path | str) -> None:
    """Remove a plug-in file and what it registered, so that it can be loaded again."""
    path = Path(path).resolve()
    if (file := _files.pop(path, None)) is not None:
        _loads.pop(path).undo()
        sys.modules.pop(file.module, None)
        _forget_all()


def forget_at_unload(forget: Callable[[], None]) -> None:
    """Call a function after plug-ins were unloaded or replaced, such as one that clears a cache of costs."""
    _forgets.append(forget)


def _forget_all() -> None:
    for forget in _forgets:
        forget()


def loaded_files() -> tuple[PluginFile, ...]:
    """Return the plug-ins that were loaded from files, in the order of loading."""
    return tuple(_files.values())


def find_settings_file(folder: Path) -> Path | None:
    """Find activemem.toml in a folder or in the nearest folder above."""
    places = (each / SETTINGS_FILE_NAME for each in (folder.resolve(), *folder.resolve().parents))
    return next((place for place in places if place.is_file()), None)


def python_hint(message: str) -> str:
    """Return how a Python program loads plug-ins, after an error about an unknown name.

    After other errors it is "". Commands load the plug-ins that activemem.toml names; Python does not.
    """
    if not UNKNOWN_NAME.search(message):
        return ""
    if extra := unloaded_extra(message):
        return f"It is a plug-in of activemem: activemem.load_plugin({extra!r})"
    import tomllib  # noqa: PLC0415 -- only after an error

    file, named = find_settings_file(Path.cwd()), []
    if file is not None:
        with suppress(OSError, ValueError):
            named = tomllib.loads(file.read_text(encoding="utf-8")).get("plugins", [])
    found = [locate_plugin(each, file.parent) for each in named if file and isinstance(each, str)]
    calls = [
        f"activemem.load_plugin({str(each)!r})"
        for each in found
        if isinstance(each, str) or each.resolve() not in _files
    ]
    if not calls:
        return "A name from a plug-in needs its file: activemem.load_plugin(FILE)"
    return f"Commands load the plug-ins that {file} names, Python does not: {'; '.join(calls)}"


def unloaded_extra(message: str) -> str:
    """Return the plug-in of this package that registers an unknown name of an error, or ""."""
    if not (names := UNKNOWN_NAME.findall(message)):
        return ""
    registers = re.compile(rf"register_\w+\(\s*['\"]({'|'.join(map(re.escape, names))})['\"]")
    extras = (name for name in extra_names() if plugin_path(name) not in _files)
    return next((name for name in extras if registers.search(plugin_path(name).read_text("utf-8"))), "")


_OF_MEMORY = ("memory", "_ALLOC", "_STATUS_NOT_INITIALIZED", "unable to find an engine", "NVML_SUCCESS")
"""Texts in errors of torch and CUDA's libraries that mean, or may mean, that memory ran out."""


@contextmanager
def plugin_errors(kind: str, name: str, item: object) -> Iterator[None]:
    """Within this context, convert exceptions of plug-in code to a PluginError with the file and line.

    `item` is the class or function that the plug-in registered. Errors of this package pass unchanged. So do
    out-of-memory errors, after which a trial is retried.
    """
    try:
        yield
    except Exception as error:
        module_name = getattr(item, "__module__", "")
        is_own = module_name.startswith(f"{OWN}.")
        is_of_memory = isinstance(error, MemoryError) or any(text in str(error) for text in _OF_MEMORY)
        if is_own or isinstance(error, ActivememError) or is_of_memory:
            raise
        module = sys.modules.get(module_name)
        file = getattr(module, "__file__", None) or kind
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        place = f"{Path(file).name}:{lines[-1]}" if lines else Path(file).name
        raise PluginError(f"{place}: {kind} '{name}': {type(error).__name__}: {error}") from error


def missing_library(error: ModuleNotFoundError, extra: str = "") -> str:
    """Return a sentence about a library that a plug-in needs; `extra` is the package's extra that has it."""
    library = (error.name or str(error)).partition(".")[0]
    install = f"pip install '{OWN}[{extra}]'" if extra else f"pip install {library}"
    return f"This needs {library}, which is not installed: {install}"


def has_plugins() -> bool:
    """Return whether files, installed packages, scripts or notebooks have registered anything."""
    load_installed()
    return bool(_files) or len(_installed) > 1 or any(each.inline_codes() for each in _registries)


def is_inline(owner: str) -> bool:
    """Return whether this owner of stored code is a script or a cell, not a plug-in."""
    return owner.startswith((SCRIPT, CELL, UNSAVED))


def loading_advice(owner: str) -> str:
    """Return how the items of an owner of stored code can be registered again; "" for a package."""
    if owner.startswith(CELL):
        return "run this cell again, or put it into a plug-in file, and load the file"
    if is_inline(owner):
        return "put what it registers into a plug-in file, and load the file"
    if not owner.endswith(".py"):
        return ""
    name = owner.removesuffix(".py")
    return f"load it with --plugin {name if name in extra_names() else owner}, or load_plugin in Python"


def owners_to_load(owners: Iterable[str]) -> list[str]:
    """Return which of these files, scripts and cells of stored code are not loaded here, sorted."""
    here = {file.path.name for file in _files.values()}
    here |= {code.rpartition(" ")[0] for code in inline_codes()}
    return sorted({owner for owner in owners if loading_advice(owner)} - here)


def note_broken(owner: str, message: str, entry: str = "") -> None:
    """Record why a plug-in cannot be used; an error about an unknown name reports the reason."""
    _broken[f"{owner} {entry}"] = BrokenPlugin(owner=owner, message=printable(message), entry=entry)


def broken_plugins() -> tuple[BrokenPlugin, ...]:
    """Return the plug-ins that are known to be unusable."""
    return tuple(_broken.values())


def load_installed() -> None:
    """Load the plug-ins of installed packages once; record those that cannot be loaded."""
    if _installed:
        return
    _installed.append(PLUGIN_GROUP)  # set before loading, which looks names up itself
    from importlib.metadata import entry_points  # noqa: PLC0415 -- slow, and few studies need it

    for entry in sorted(entry_points(group=PLUGIN_GROUP), key=lambda entry: (entry.name, entry.value)):
        owner = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        try:
            with _registering(owner, _package_code(owner, entry)):
                entry.load()
            _installed.append(owner)
        except PluginError as error:
            note_broken(owner, f"entry point {entry.name} of {error}", entry.name)


def _package_code(owner: str, entry: EntryPoint) -> str:
    """Return a package's name, its version, and a digest of both and of its code.

    The code is the module of its entry point, and all modules of the package that this one imports, directly
    or through others. Nothing is imported to find them.
    """
    sources = _package_sources(entry.module)
    digest = hashlib.sha256(owner.encode() + b"\0" + sources.pop(entry.module, b"") + b"\0")
    for name, source in sorted(sources.items()):
        digest.update(name.encode() + b"\0" + source + b"\0")
    return f"{owner} {digest.hexdigest()[:DIGEST_LENGTH]}"


def _package_sources(module: str) -> dict[str, bytes]:
    """Return the sources of a module, and of those modules of its package that it imports, by name."""
    package, sources, open_modules = module.partition(".")[0], dict[str, bytes](), [module]
    while open_modules:
        name = open_modules.pop()
        found = _module_spec(name)
        if name in sources or found is None or found.origin is None or not found.origin.endswith(".py"):
            continue
        sources[name] = source = Path(found.origin).read_bytes()
        # importing a module runs the packages that contain it
        open_modules += [name.rpartition(".")[0]] if "." in name else []
        is_package = found.submodule_search_locations is not None
        inside = name if is_package else name.rpartition(".")[0]
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # loading it reports this
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = inside.split(".")[: len(inside.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                # a name may be a module or a part of one
                names = [base, *(f"{base}.{each.name}" for each in node.names)]
            else:
                continue
            open_modules += [each for each in names if each.partition(".")[0] == package]
    return sources


def _module_spec(module: str) -> ModuleSpec | None:
    """Return where a module is without importing anything; None if it is not found."""
    top, *parts = module.split(".")
    try:
        found, name = find_spec(top), top
        for part in parts:
            name = f"{name}.{part}"
            found = found and PathFinder.find_spec(name, found.submodule_search_locations or [])
    except (ImportError, ValueError):
        return None
    return found


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
        with _registering(file.path.name, file.code) as load:
            exec(compile(file.source, module.__file__, "exec"), module.__dict__)
    except PluginError:
        del sys.modules[file.module]
        raise
    _files[file.path], _loads[file.path] = file, load
    return module


@contextmanager
def _registering(owner: str, code: str) -> Iterator[_Load]:
    """Within this context, register items for an owner; after an exception, remove them all."""
    load = _Load(owner, code)
    before = _loading.set(load)
    try:
        yield load
    except (Exception, SystemExit) as error:
        load.undo()
        kind = "" if isinstance(error, PluginError) else f"{type(error).__name__}: "
        text = str(error)
        if getattr(error, "code", "") == "model-field-missing-annotation":  # of pydantic, for `key = value`
            got = text.partition("`")[2].partition("`")[0]
            kind, text = "", f"expected a property, or a key with its type (name: type = value), got {got}"
        line, source = _place_of(error, owner)
        if isinstance(error, SyntaxError) and source:  # its text has the file and the line as well
            start = (error.offset or 1) - 1
            stop = (error.end_offset or 0) - 1
            shown = (error.text or "")[start : stop if stop > start else None].strip()
            text = f"{error.msg}{f' at {shown!r}' if shown else ''}"
        where = f", in {quoted(source)!r}" if source and kind else ""
        raise PluginError(f"{owner}{line}: {kind}{text}{where}") from error
    finally:
        _loading.reset(before)


def _place_of(error: BaseException, owner: str) -> tuple[str, str]:
    """Return where a plug-in failed in its own file: `:12`, and the source of this line.

    Both are "" if it failed elsewhere.
    """
    if isinstance(error, SyntaxError):
        return f":{error.lineno}", (error.text or "").strip()
    lines, source, frame = "", "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        if Path(file).name == owner:
            lines, source = f":{frame.tb_lineno}", linecache.getline(file, frame.tb_lineno).strip()
        frame = frame.tb_next
    return lines, source
