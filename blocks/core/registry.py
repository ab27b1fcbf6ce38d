"""Which class is the module of a name: those of this package, and those that other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ...grammar.vocabulary.entry_points import MODULE_GROUP, PluginRegistry
from ...plugins import OpenRegistry

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type)


class Registry(Generic[Base]):
    """Classes of one base by name; `kind` is what a name stands for, `base_path` where the base is found."""

    def __init__(self, base: type[Base], *, kind: str, base_path: str) -> None:
        self._base, self._kind, self._base_path = base, kind, base_path
        self.classes: dict[str, type[Base]] = {}
        self.of_plugins: OpenRegistry[type[Base]] = OpenRegistry(f"module of {kind}")
        self._plugins = PluginRegistry(MODULE_GROUP, self._register_entry_point)

    def register(self, name: str) -> Callable[[Class], Class]:
        """A decorator that makes a class the module of that name; a taken name raises ValueError."""

        def register(cls: Class) -> Class:
            taken = self.classes.get(name)
            if taken is not None:
                has = f"the module of {self._kind} '{name}' is already {taken.__qualname__}"
                raise ValueError(f"{has}, got {cls.__qualname__}")
            self.classes[name] = cls  # pyright: ignore[reportArgumentType] -- no bound can say that it is a `Base`
            return cls

        return register

    def find(self, name: str) -> type[Base] | None:
        """Return the module of that name, or None; plug-ins are asked for names that are not known here."""
        return self.classes.get(name) or self.of_plugins.get(name) or self._plugins.find(name)

    def missing_reason(self, name: str) -> str | None:
        """Why what has that name cannot be built; None if it can."""
        if self.find(name) is not None:
            return None
        problem = self._plugins.problem(name)
        return f"{self._kind} '{name}' has no module" + (f": {problem}" if problem else "")

    def _register_entry_point(self, found: object, name: str, _owner: str) -> type[Base]:
        """The module of an entry point, registered; ValueError for what is none."""
        if not (isinstance(found, type) and issubclass(found, self._base)):
            raise ValueError(f"expected a class of {self._base_path}, got {found!r}")
        return found if self.classes.get(name) is found else self.register(name)(found)
