"""Recipes as Python expressions: `4 * (sa + highway_conv(k=20) >> ff(512))`, without quotes.

Operators have Python's precedence, so the same characters build the same recipe. Words are strings,
`act="gelu"`, and booleans are Python's. A hole is `hole("mixer")`. Expressions are converted to text and
checked by `parse`; the names of the blocks are in `block_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter as Argument
from inspect import Signature
from typing import overload

from ..errors import Fault
from .canonical import render_operand
from .errors import RecipeError
from .nodes import BlockNode, Dimension, HoleNode
from .recipe import Expression, Recipe, format_scalar, parse, parse_dimension
from .vocabulary.spec import REQUIRED, Spec, lookup


@dataclass(frozen=True, eq=False, repr=False)
class RecipeHole(Recipe):
    """A hole `{name}` that stands for a part of a recipe, a count or a parameter's value."""


@dataclass(frozen=True, slots=True, repr=False)
class SearchDimension(Expression):
    """A search dimension as an expression, such as `integer(3, 40)`, for a count or a parameter's value."""

    dimension: Dimension

    def __repr__(self) -> str:
        return self.operand_text()

    def operand_text(self, sign: str = ">>") -> str:
        """Return the dimension as recipe text, such as `integer(3, 40)`."""
        return render_operand(self.dimension, sign)


HoleOrDimension = SearchDimension | RecipeHole
"""A hole or a dimension in place of a parameter's value, which is not chosen yet."""

ArgumentValue = int | float | bool | str | Recipe | SearchDimension
"""The possible types of an argument; a string is a word, or the text of a recipe."""


class _NamedBlock(Expression):
    __slots__ = ()

    def __call__(self, /, *values: ArgumentValue, **named: ArgumentValue) -> Recipe:
        """Return a recipe of this block with the given arguments."""
        name = self.operand_text()
        parameters = _require_spec(name).parameters
        texts = [
            _argument_text(value, parameters[place].kind if place < len(parameters) else "any")
            for place, value in enumerate(values)
        ]
        kinds = {parameter.name: parameter.kind for parameter in parameters}
        texts += [f"{one}={_argument_text(value, kinds.get(one, 'any'))}" for one, value in named.items()]
        return parse(f"{name}({', '.join(texts)})")

    @property
    def __signature__(self) -> Signature:
        """Return the block's parameters and defaults, for consoles and notebooks."""
        kind, found = Argument.POSITIONAL_OR_KEYWORD, list[Argument]()
        for parameter in _require_spec(self.operand_text()).parameters:
            default = Argument.empty if parameter.default is REQUIRED else parameter.default
            found.append(Argument(parameter.name, kind, default=default))
        return Signature(found)


@dataclass(frozen=True, slots=True)
class BlockFactory(_NamedBlock):
    """A block with required arguments; calling it returns a recipe."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def operand_text(self, sign: str = ">>") -> str:
        """Return the name of the block."""
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class BlockRecipe(_NamedBlock, Recipe):
    """A block without required arguments: it is a recipe, and can also be called with arguments."""

    @property
    def name(self) -> str:
        """Return the name of the block."""
        assert isinstance(self.root, BlockNode)
        return self.root.name

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return block, (self.name,)


def block(name: str) -> BlockFactory | BlockRecipe:
    """Return the block with this name, built-in or from a plug-in; raise RecipeError if there is none."""
    spec = _require_spec(name)
    if any(parameter.default is REQUIRED for parameter in spec.parameters):
        return BlockFactory(name)
    return BlockRecipe(BlockNode(name))


def hole(name: str) -> RecipeHole:
    """Return the hole `{name}`; raise RecipeError for an invalid name."""
    text = f"{{{name}}}"
    root = parse(text).root
    if not isinstance(root, HoleNode):
        raise RecipeError(text, [Fault(0, len(text), f"expected the name of a hole, got '{name}'")])
    return RecipeHole(root)


def tied(repeat: Expression) -> Recipe:
    """Return `tied(repeat)`, as in `tied(4 * a)`: four applications of `a` with shared weights."""
    return parse(f"tied({_argument_text(repeat)})")


def each(count: int, part: Expression) -> Recipe:
    """Return `count` copies of a part in series; a search chooses for each copy separately.

    `each(4, a)` is `a >> a >> a >> a`. In `4 * a` all copies share their choices.
    """
    return parse(f"each({_argument_text(count)}, {_argument_text(part)})")


def integer(lo: int, hi: int, *, step: int = 1, log: bool = False) -> SearchDimension:
    """Return a dimension of whole numbers from `lo` to `hi`, inclusive."""
    stepped = "" if step == 1 else f", step={_argument_text(step)}"
    logs = "" if log is False else f", log={_argument_text(log)}"
    return _dimension(f"integer({_argument_text(lo)}, {_argument_text(hi)}{stepped}{logs})")


def real(lo: float, hi: float, *, log: bool = False) -> SearchDimension:
    """Return a dimension of real numbers from `lo` to `hi`, inclusive."""
    logs = "" if log is False else f", log={_argument_text(log)}"
    return _dimension(f"real({_argument_text(lo)}, {_argument_text(hi)}{logs})")


@overload
def choice(*options: Recipe) -> Recipe: ...  # pyright: ignore[reportOverlappingOverload] -- holes fit both
@overload
def choice(*options: int | float | str | HoleOrDimension) -> SearchDimension: ...
def choice(*options: ArgumentValue) -> Recipe | SearchDimension:
    """Return a search dimension that chooses between the given options.

    The result is a recipe if the options are recipes, and a SearchDimension if they are numbers or words.
    """
    text = f"choice({', '.join(map(_argument_text, options))})"
    parts = [option for option in options if isinstance(option, Recipe | BlockFactory)]
    is_recipe = any(not isinstance(part, RecipeHole) for part in parts) or (
        options and len(parts) == len(options)
    )
    return parse(text) if is_recipe else _dimension(text)


def _argument_text(value: ArgumentValue | Expression, kind: str = "any") -> str:
    """Return an argument as recipe text; raise TypeError for a value that recipes cannot contain.

    A string is recipe text for a parameter of kind "recipe", else a word. Any other string stays in quotes,
    to get the same message as in a text.
    """
    if isinstance(value, Expression):
        return value.operand_text()
    if isinstance(value, str):
        if kind == "recipe":
            return parse(value).text
        return value if value.isascii() and value.isidentifier() else f'"{value}"'
    text = format_scalar(value)
    if text is None:
        raise TypeError(f"expected a number, a word or a recipe, got {type(value).__name__}")
    return text


def _dimension(text: str) -> SearchDimension:
    return SearchDimension(parse_dimension(text))


def _require_spec(name: str) -> Spec:
    spec = lookup(name)
    if spec is None:
        parse(name)  # raises with the nearest name
        raise RecipeError(name, [Fault(0, len(name), f"expected the name of a block, got '{name}'")])
    return spec
