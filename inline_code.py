"""The code of what a script or a notebook's cell registers.

The text of a script is its code. The text of a cell is not all of its code, because other cells define
functions and constants that it uses.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import inspect
import linecache
import logging
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any, Final

_log = logging.getLogger(__name__)
_reported = set[tuple[str, str]]()  # files or cells, each with a global

SCRIPT: Final = "the script "
"""The start of the owner of what a script registers; the name of its file follows."""

CELL: Final = "the notebook cell of "
"""The start of the owner of what a notebook's cell registers; the kind and the name of the item follow."""

UNSAVED: Final = "the unsaved code of "
"""The start of the owner of what other code without a file registers, as that of `python -c`."""


class InlineCode:
    """The code that registers an item outside of plug-ins; of a cell, with the globals that it uses.

    `owner` names the code, and stays the same after an edit. `run` is one object for all items that one run
    of a script or a cell registers. Of a script or an imported module only the text counts, as of a plug-in
    in a file.
    """

    def __init__(self, item: str, frame: FrameType) -> None:
        """Read the code of the frame that registers an item, such as `metric confidence`."""
        self._item, self._globals = item, frame.f_globals
        while frame.f_back is not None and frame.f_back.f_globals is self._globals:
            frame = frame.f_back  # up to the statement of the script or cell
        is_function = not frame.f_code.co_name.startswith("<")
        self.run: object = object() if is_function else frame
        self._file = frame.f_code.co_filename
        linecache.checkcache(self._file)  # a file that was run before may have been edited since
        text = _source(self._file)
        self._text = text or _compiled_text(frame.f_code)
        self._file_of_text = self._file if text else None
        path, is_main = Path(self._file), self._globals.get("__name__") == "__main__"
        # with a debugger, cells are files of ipykernel
        if is_file := path.is_file() and not path.parent.name.startswith("ipykernel_"):
            self.owner = f"{SCRIPT}{path.name}" if is_main else path.name
        else:
            is_unsaved = self._file.startswith(("<stdin>", "<string>", "<python-input"))
            self.owner = f"{UNSAVED if is_unsaved else CELL}{item}"
        self._statement, self._used, self._own = None, dict[str, Any](), set[str]()
        if not is_file:
            self._statement, self._own = _statement(text, frame)
            self._used = self._present(_names(self._statement, "LOAD_NAME"))  # such as a base class
        self._then = repr(self._describe(self._used))

    def digest(self) -> str:
        """Return the SHA-256 of the code and of the globals that it uses, as they are now."""
        read = _names(self._statement, "LOAD_GLOBAL") if self._statement else ()  # by its functions
        now = self._describe(self._used | self._present(read))
        globals_of_code = f"{self._then}{now}" if now else ""
        return hashlib.sha256(f"{self._text}{globals_of_code}".encode()).hexdigest()

    def _present(self, names: Iterable[str]) -> dict[str, Any]:
        known = (name for name in names if name in self._globals and not name.startswith("__"))
        return {name: self._globals[name] for name in known}

    def _describe(self, objects: dict[str, Any]) -> list[tuple[str, str]]:
        """Describe these objects and all globals that they use, sorted by name.

        A constant is described by its value, a function by the text of its cell, and a class by its
        attributes and bases. Report other objects once, because their changes go unnoticed. Leave out what
        the code itself assigns, such as a counter.
        """
        found, waiting, seen, others = dict[str, str](), dict(objects), set[int](), set[str]()
        sources, texts = dict[str, str](), set[str]()
        assigned, attributes = set[str](), set[str]()
        if self._statement:
            assigned.update(_assigned(self._statement))
            attributes.update(_names(self._statement, "STORE_ATTR"))
        while waiting:
            name, value = waiting.popitem()
            value = _undecorated(value)
            if name in found or id(value) in seen:
                continue
            if (text := _constant_text(value)) is not None:
                found[name] = text
                continue
            seen.add(id(value))
            if isinstance(value, FunctionType) and value.__globals__ is self._globals:
                code = value.__code__
                found[name] = value.__qualname__
                if (file := code.co_filename) != self._file_of_text:
                    if file not in sources:
                        sources[file] = _source(file)
                    texts.add(sources[file] or _compiled_text(code))
                assigned.update(_names(code, "STORE_GLOBAL"))
                attributes.update(_names(code, "STORE_ATTR"))
                waiting |= self._present(_names(code, "LOAD_GLOBAL")) | _bound_values(name, value)
            elif isinstance(value, type) and value.__module__ == self._globals.get("__name__"):
                found[name] = value.__qualname__
                waiting |= _attributes(name, value)
            elif name in self._globals and not hasattr(value, "__name__"):
                others.add(name)
        self._report(others - assigned)
        for name in list(found):
            root, *path = name.split(".")
            if root in assigned or attributes.intersection(path):
                del found[name]
        return [*sorted(found.items()), *(("", text) for text in sorted(texts))]

    def _report(self, names: set[str]) -> None:
        if new := sorted(name for name in names - self._own if (self._file, name) not in _reported):
            _reported.update((self._file, name) for name in new)
            told = "%s uses %s, whose changes its trials do not notice: define it in the same cell"
            _log.warning(told, self._item, ", ".join(new))


def _statement(text: str, frame: FrameType) -> tuple[CodeType, set[str]]:
    """Return the code of the statement that a frame is at, and the names that the whole text assigns."""
    try:
        tree = ast.parse(text)
        node = next(each for each in tree.body if (each.end_lineno or 0) >= frame.f_lineno)
        code = compile(ast.Module([node], []), "", "exec")
    except (SyntaxError, StopIteration):  # such as a cell that awaits
        return frame.f_code, set()
    own = set[str]()
    for each in ast.walk(tree):
        match each:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                own.add(name)
            case ast.alias(name=name, asname=asname):
                own.add((asname or name).partition(".")[0])
    return code, own


@lru_cache(maxsize=4096)
def _names(code: CodeType, operation: str) -> tuple[str, ...]:
    """Return the names that instructions of this kind have, also in functions and classes of the code."""
    own = [each.argval for each in dis.get_instructions(code) if each.opname == operation]
    nested = (_names(each, operation) for each in code.co_consts if isinstance(each, CodeType))
    return tuple(dict.fromkeys((*own, *(name for names in nested for name in names))))


def _assigned(statement: CodeType) -> tuple[str, ...]:
    """Return the globals that a statement or its functions assign."""
    own = (each.argval for each in dis.get_instructions(statement) if each.opname == "STORE_NAME")
    return (*own, *_names(statement, "STORE_GLOBAL"))


def _undecorated(value: Any) -> Any:  # noqa: ANN401 -- any global
    """Return the function of a property, a method or a decorated function, and any other value itself."""
    value = value.fget if isinstance(value, property) else value
    return inspect.unwrap(value) if inspect.isroutine(value) else value


def _constant_text(value: Any) -> str | None:  # noqa: ANN401 -- as above
    """Return a text for a number, a text, or a tuple or frozen dataclass of these; None for other values."""
    if value is None or isinstance(value, int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, tuple):
        parts: Iterable[Any] = value
    elif is_dataclass(value) and not isinstance(value, type) and type(value).__dataclass_params__.frozen:
        parts = (getattr(value, field.name) for field in fields(value))
    else:
        return None
    texts = [_constant_text(part) for part in parts]
    return None if None in texts else f"{type(value).__qualname__}{texts}"


def _source(file: str) -> str:
    return "".join(linecache.getlines(file))


def _compiled_text(code: CodeType) -> str:
    """Return a text for code without source, such as that of `python -c`. It is the same in all processes."""
    constants = (sorted(each, key=repr) if isinstance(each, frozenset) else each for each in code.co_consts)
    texts = [_compiled_text(each) if isinstance(each, CodeType) else repr(each) for each in constants]
    return repr((code.co_code, code.co_names, code.co_varnames, texts))


def _bound_values(name: str, function: FunctionType) -> dict[str, Any]:
    """Return the defaults of a function's arguments, and the values of the functions around it."""
    free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    values = {each: cell.cell_contents for each, cell in free if cell != CellType()}
    values |= {"defaults": function.__defaults__, **(function.__kwdefaults__ or {})}
    return {f"{name}.{each}": value for each, value in values.items()}


def _attributes(name: str, cls: type) -> dict[str, Any]:
    """Return the methods, attributes and base classes of a class."""
    own = {key: each for key, each in vars(cls).items() if not key.startswith("__") or callable(each)}
    own |= {f"base{place}": base for place, base in enumerate(cls.__bases__)}
    return {f"{name}.{key}": each for key, each in own.items()}
