"""Every block as a Python name, and its signature in editors."""

from __future__ import annotations

from pathlib import Path

import pytest

import activemem
from activemem.grammar import Parameter, Spec, block_names, lookup
from activemem.grammar.expressions import BlockFactory, BlockRecipe
from activemem.grammar.signature import default_text, describe_values
from activemem.grammar.vocabulary.spec import REQUIRED, builtin_names

STUB = Path(__file__).parents[2] / "grammar" / "block_names.pyi"
REGENERATE = "python tests/grammar/test_block_names.py"

HEAD = f'''\
"""Type stubs of the blocks for editors, generated from the vocabulary by `{REGENERATE}`."""
# fmt: off
# ruff: noqa: E501, N803, N805

from typing import Literal

from .expressions import HoleOrDimension
from .recipe import Recipe

__all__ = [
{{names}}]
'''


def stub() -> str:
    """Return `named.pyi`: a class with a typed `__call__` for each block; standalone ones are recipes."""
    specs = [spec for name in builtin_names() if (spec := lookup(name)) is not None]
    names = "".join(f'    "{spec.name}",\n' for spec in specs)
    return HEAD.format(names=names) + "".join(map(_class, specs))


def _class(spec: Spec) -> str:
    needs = any(parameter.default is REQUIRED for parameter in spec.parameters)
    name = "_" + "".join(part.capitalize() for part in spec.name.split("_"))
    typed = "".join(f"        {each.name}: {_type(each)}{_default(each)},\n" for each in spec.parameters)
    told = "".join(
        f"        {each.name}: {each.meaning}; {describe_values(each)}.\n" for each in spec.parameters
    )
    told = told and f"{told}\n"
    return (
        f"\nclass {name}{'' if needs else '(Recipe)'}:\n"
        f'    """The block `{spec.name}`: {spec.summary}."""\n'
        f"\n    def __call__(\n        _self,\n{typed}    ) -> Recipe:\n"
        f'        """{spec.summary[0].upper()}{spec.summary[1:]}: {spec.equation}.\n\n'
        f'{told}        {spec.source}.\n        """\n'
        f"\n{spec.name}: {name}\n"
    )


def _type(parameter: Parameter) -> str:
    if parameter.kind == "recipe":
        return "str | Recipe"
    quoted = ", ".join(f'"{word}"' for word in parameter.words)
    types = {"integer": "int", "real": "float", "boolean": "bool", "word": f"Literal[{quoted}]"}
    return f"{types[parameter.kind]} | HoleOrDimension"


def _default(parameter: Parameter) -> str:
    text = default_text(parameter)
    if text is None:
        return ""
    return f' = "{text}"' if parameter.kind == "word" else f" = {parameter.default!r}"


def test_the_stub_for_editors_agrees_with_the_vocabulary():
    assert stub() == STUB.read_text(encoding="utf-8"), f"if this is meant: {REGENERATE}"


def test_every_block_is_a_name_of_the_package_and_none_is_called_like_anything_else_there():
    assert set(block_names.__dir__()) == set(builtin_names())
    for name in builtin_names():
        assert isinstance(getattr(activemem, name), BlockFactory | BlockRecipe)
        assert getattr(activemem, name) == getattr(block_names, name)
    others = {path.stem for path in STUB.parents[1].iterdir()} | set(activemem.__all__)
    assert others.isdisjoint(builtin_names())
    assert set(builtin_names()) <= set(dir(activemem))


def test_a_name_that_the_package_does_not_have_gets_the_nearest(golden):
    with golden.raises(AttributeError):
        _ = block_names.cnv  # pyright: ignore[reportAttributeAccessIssue] -- what is tested
    with pytest.raises(ImportError, match=r"^cannot import name 'highway_cnv' from 'activemem' "):
        from activemem import highway_cnv  # pyright: ignore[reportAttributeAccessIssue] # noqa: F401


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
