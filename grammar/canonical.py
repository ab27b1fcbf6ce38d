"""Functions that write a recipe as canonical text, and compute its id.

`parse(render(node))` returns an equal node; parentheses are only used where precedence requires them, and
numbers are written like in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from .nodes import (
    BlockNode,
    ChoiceDimension,
    HoleNode,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    Scalar,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from .vocabulary.spec import lookup

_SERIES, _SUM, _PRODUCT, _OPERAND = range(4)  # binding strength of a context


def render(node: Value) -> str:
    """Return the canonical text of a node. Equal nodes have equal texts.

    Arguments are in declared order. Default values and needless parentheses are left out.
    """
    return _Renderer().render(node)


def option_label(option: Value) -> Scalar:
    """Return the name of an option of a choice, as it appears in results.

    It is the number or word itself. If the option is a part of a recipe, it is the part's text.
    """
    return option if isinstance(option, int | float | str) else render(option)


def render_operand(node: Value, operator: str) -> str:
    """Return the canonical text of a part, in parentheses if it needs them as an operand of `operator`.

    The operator is `>>`, `+` or `*`.
    """
    place = {">>": _SERIES, "+": _SUM, "*": _OPERAND}[operator]
    return _Renderer().render(node, place)


def render_filled(node: Value, fillings: Mapping[str, str]) -> str:
    """Return the canonical text of a recipe in which each hole `{name}` is replaced by the given text.

    `fillings` maps the name of a hole to the text that replaces it.
    """
    return _Renderer(fillings=fillings).render(node)


def identity(node: Value) -> str:
    """Return the identity of a recipe: its canonical text, with the parts of each sum sorted.

    Recipes with the same meaning have equal identities. For example, `a + b` and `b + a` mean the same.
    """
    return _Renderer(sort=True).render(node)


def recipe_id(identity_text: str) -> str:
    """Return the id of a recipe: eight hexadecimal digits of a hash of its identity text."""
    return sha256(identity_text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class _Renderer:
    """Converter of a tree to text, which can sort the parts of sums, and replace holes by `fillings`."""

    sort: bool = False
    fillings: Mapping[str, str] = field(default_factory=dict[str, str])

    def render(self, node: Value, precedence: int = _SERIES) -> str:  # noqa: PLR0911 -- one return for each kind
        """Return the text, in parentheses if the operator around it binds more tightly."""
        match node:
            case BlockNode():
                return self._block(node)
            case SumNode():
                return _parenthesize(self._sum(node), precedence > _SUM)
            case SeriesNode():
                return _parenthesize(
                    " >> ".join(self.render(part, _SUM) for part in node.parts), precedence > _SERIES
                )
            case RepeatNode():
                text = f"{self.render(node.count, _OPERAND)} * {self.render(node.body, _OPERAND)}"
                return _parenthesize(text, precedence > _PRODUCT)
            case TiedNode():
                return f"tied({self.render(node.body)})"
            case HoleNode():
                return self.fillings.get(node.name, f"{{{node.name}}}")
            case ChoiceDimension():
                return f"choice({', '.join(self.render(option) for option in node.options)})"
            case IntegerDimension():
                step = f", step={node.step}" if node.step != 1 else ""
                return f"integer({node.low}, {node.high}{step}{', log=true' if node.log else ''})"
            case RealDimension():
                return f"real({node.low!r}, {node.high!r}{', log=true' if node.log else ''})"
            case bool():
                return "true" if node else "false"
            case str():
                return node
            case _:
                return repr(node)

    def _block(self, block: BlockNode) -> str:
        if not block.arguments:
            return block.name
        spec = lookup(block.name)
        bare = {parameter.name for parameter in spec.parameters if parameter.positional} if spec else set()
        texts: list[str] = []
        for place, (name, value) in enumerate(block.arguments):
            # positional only until an argument is omitted
            positional = name in bare and spec is not None and spec.parameters[place].name == name
            text = self.render(value)
            texts.append(text if positional else f"{name}={text}")
        return f"{block.name}({', '.join(texts)})"

    def _sum(self, node: SumNode) -> str:
        texts = [self.render(part, _PRODUCT) for part in node.parts]
        return " + ".join(sorted(texts) if self.sort else texts)


def _parenthesize(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
