"""What other packages bring: entry points, called like the block that they are for, looked up when needed.

A block of another package has two of them, each `name = "package.module:object"`: its specification in the
group `activemem.vocabulary`, which is loaded wherever the block is named and needs no torch, and its module
in `activemem.blocks`, which is loaded where it is built. Installed packages are looked through once, when a
name is met that this package does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

from ...plugins import describe_package, package_code

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SPEC_GROUP = "activemem.vocabulary"
MODULE_GROUP = "activemem.blocks"

PluginT = TypeVar("PluginT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginProblem:
    """Why an entry point cannot be used; `owner` is the package, or the packages, with their versions."""

    owner: str
    group: str
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.owner}, entry point '{self.name}' of {self.group}: {self.message}"


class PluginRegistry(Generic[PluginT]):
    """The entry points of one group, each loaded when it is first asked for.

    `convert` gets what was loaded, its name and its owner; it returns it as it is to be used, or raises
    ValueError with what is wrong with it. Whatever an entry point raises becomes its problem and concerns no
    other.
    """

    def __init__(self, group: str, convert: Callable[[object, str, str], PluginT]) -> None:
        self.group = group
        self._convert = convert
        self._taken: dict[str, PluginT] = {}
        self._problems: dict[str, PluginProblem] = {}

    @cached_property
    def _entry_points(self) -> dict[str, list[EntryPoint]]:
        """Every entry point of the group by its name, as installed packages have them."""
        from importlib.metadata import entry_points  # noqa: PLC0415 -- slow, and few recipes need it

        offers: dict[str, list[EntryPoint]] = {}
        for entry in entry_points(group=self.group):
            offers.setdefault(entry.name, []).append(entry)
        return offers

    def names(self) -> tuple[str, ...]:
        """What is offered, be it usable or not, sorted."""
        return tuple(sorted(self._entry_points))

    def find(self, name: str) -> PluginT | None:
        """What is offered under the name; None if there is nothing, or nothing that can be used."""
        if name in self._entry_points and name not in self._taken and name not in self._problems:
            self._load(name, self._entry_points[name])
        return self._taken.get(name)

    def problem(self, name: str) -> PluginProblem | None:
        """Why what is offered under the name cannot be used; None if it can, or if there is nothing."""
        self.find(name)
        return self._problems.get(name)

    def _load(self, name: str, entries: list[EntryPoint]) -> None:
        """Load and take the one entry point of the name; what goes wrong is noted."""
        owner = " and ".join(sorted(map(describe_package, entries)))
        message = "only one package may bring a name, so none of them is used"
        if len(entries) == 1:
            message = self._try_load(name, entries[0], owner)
        if message is not None:
            line = "".join(sign if sign.isprintable() else " " for sign in message)
            self._problems[name] = PluginProblem(owner=owner, group=self.group, name=name, message=line)

    def _try_load(self, name: str, entry: EntryPoint, owner: str) -> str | None:
        """What goes wrong when an entry point is loaded and taken, or None."""
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- the code of others may raise anything
            return f"{type(error).__name__}: {error}"
        try:
            self._taken[name] = self._convert(loaded, name, owner)
        except ValueError as error:
            return str(error)
        return None


@cache
def block_package_code(name: str) -> str | None:
    """The package that brings a block, with a digest of its specification's and its module's source."""
    from importlib.metadata import entry_points  # noqa: PLC0415 -- as above

    found = [entry for group in (SPEC_GROUP, MODULE_GROUP) for entry in entry_points(group=group, name=name)]
    return package_code(found) if found else None
