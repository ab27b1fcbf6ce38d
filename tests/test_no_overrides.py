"""No class overrides a method of a class that is itself in use: classes are abstract or final."""

from __future__ import annotations

import ast

from .product_classes import nodes_of, own_classes, syntax_trees


def names_in_use() -> set[str]:
    """Return the names that are called anywhere, and those of classes that register themselves."""
    found: set[str] = set()
    for node in (node for tree in syntax_trees().values() for node in nodes_of(tree)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                found.add(name)
            case ast.ClassDef() if any("register" in ast.unparse(each) for each in node.decorator_list):
                found.add(node.name)
    return found


def does_something(cls: type, name: str) -> bool:
    """Return whether a method is more than a hook, whose body is its docstring alone."""
    code = getattr(vars(cls)[name], "__code__", None)
    return code is None or code.co_code != hook.__code__.co_code or code.co_consts[1:] != (None,)


def hook() -> None:
    """Do nothing."""


def overridden(own: set[type], in_use: set[str]) -> set[str]:
    """Return the overrides of concrete methods of the classes in use, as "Class.method < Base"."""
    found: set[str] = set()
    for cls in own:
        for name, value in vars(cls).items():
            if name.startswith("__") or not (callable(value) or hasattr(value, "__get__")):
                continue
            for base in cls.__mro__[1:]:
                if base not in own or base.__name__ not in in_use or name not in vars(base):
                    continue
                is_abstract = getattr(vars(base)[name], "__isabstractmethod__", False)
                if not is_abstract and does_something(base, name):
                    found.add(f"{cls.__name__}.{name} < {base.__name__}")
    return found


def test_no_class_overrides_a_method_of_a_class_in_use():
    found = overridden(own_classes(), names_in_use())
    assert found == set(), "share an abstract base, take a parameter, or compose"


class Base:
    def listen(self) -> None:
        """Do nothing."""

    def act(self) -> int:
        return 1


class Derived(Base):
    def listen(self) -> None:
        self.act()

    def act(self) -> int:
        return 2


def test_an_override_of_a_class_in_use_is_found_and_one_of_a_hook_is_not():
    assert overridden({Base, Derived}, {"Base"}) == {"Derived.act < Base"}
    assert overridden({Base, Derived}, set()) == set()
