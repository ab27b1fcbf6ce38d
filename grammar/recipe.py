"""Recipes: parsed texts with their canonical spelling, their id, their holes and their search dimensions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ..errors import Fault, FaultCollector, argument_fault, check_arguments, describe_value, hint, plain_value
from . import dimensions as search_dimensions
from .canonical import identity, recipe_id, render, render_filled, render_operand
from .checker import check_dimension, check_recipe
from .errors import RecipeError
from .nodes import Dimension, HoleNode, Node, Scalar, Value, walk
from .parser import MAX_DEPTH, CallSyntax, HoleSyntax, OperationSyntax, Syntax, parse_syntax

MAX_LENGTH = 10_000
"""The maximum number of characters of a recipe's text, as given and as rendered."""


class Expression(ABC):
    """Base class of Python objects that `+`, `>>` and `*` join into recipes.

    A joined expression is checked at once; a fault raises the RecipeError of its text.
    """

    __slots__ = ()

    @abstractmethod
    def operand_text(self, sign: str = ">>") -> str:
        """Return the recipe text, in parentheses if it needs them as an operand of the operator `sign`.

        The operator is `>>`, `+` or `*`.
        """

    def __add__(self, other: Expression) -> Recipe:
        return _combine(self, "+", other)

    def __radd__(self, other: Expression) -> Recipe:
        return _combine(other, "+", self)

    def __rshift__(self, other: Expression) -> Recipe:
        return _combine(self, ">>", other)

    def __rrshift__(self, other: Expression) -> Recipe:
        return _combine(other, ">>", self)

    def __mul__(self, other: Expression) -> Recipe:
        return _combine(self, "*", other)

    def __rmul__(self, other: int) -> Recipe:
        return _combine(other, "*", self)


@dataclass(frozen=True, eq=False, repr=False)
class Recipe(Expression):
    """A recipe without faults, with its canonical text and its id.

    Two recipes are equal if they have the same meaning, such as `a + b` and `b + a`. `text` is canonical, and
    `id` has eight hexadecimal digits that equal recipes share. A pickle only has the text.
    """

    root: Node
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", render(self.root))

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Recipe) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return parse, (self.text,)

    def operand_text(self, sign: str = ">>") -> str:
        """Return the canonical text, in parentheses if it needs them as an operand of the operator `sign`.

        The operator is `>>`, `+` or `*`.
        """
        return render_operand(self.root, sign)

    @cached_property
    def identity(self) -> str:
        """Return the canonical text with the parts of each sum sorted, equal for the same meaning."""
        return identity(self.root)

    @property
    def id(self) -> str:
        """Return the id: eight hexadecimal digits of a hash, equal for recipes with the same meaning."""
        return recipe_id(self.identity)

    @cached_property
    def holes(self) -> tuple[str, ...]:
        """Return the names of the holes in order of appearance, each once."""
        return tuple(dict.fromkeys(node.name for node in walk(self.root) if isinstance(node, HoleNode)))

    @cached_property
    def dimensions(self) -> tuple[tuple[str, Dimension], ...]:
        """Return the search dimensions with their names, in text order."""
        is_open = any(isinstance(node, Dimension) for node in walk(self.root))
        return search_dimensions.dimensions(self.root) if is_open else ()  # it copies the tree

    def fill(self, fillings: Mapping[str, Value | Expression]) -> Recipe:
        """Return the recipe with its holes filled; `fillings` maps the names of holes to values or recipes.

        Other holes remain. A string is parsed as recipe text at the hole, so `relu` and `sa + conv(k=20)`
        both work. Raise RecipeError for a name without a hole, and for a value that does not fit.
        """
        check_arguments(argument_fault("fillings", fillings, Mapping, "a value for each hole"))
        known = self.holes
        unknown = [name for name in fillings if name not in known]
        if unknown:
            raise self._make_error(
                [f"the recipe has no hole '{name}'{hint(name, known)}" for name in unknown]
            )
        texts = {name: _operand(value) for name, value in fillings.items()}
        return _filled(self.text, texts) or parse(render_filled(self.root, texts))

    def choose(self, values: Mapping[str, Scalar]) -> Recipe:
        """Return the recipe in which the named search dimensions are replaced by these values.

        `values` maps the names of dimensions to values. Other dimensions remain. The value for a choice
        between parts is the canonical text of an option. Raise RecipeError for a name without a dimension,
        and for a value outside its dimension.
        """
        check_arguments(argument_fault("values", values, Mapping, "a value for each dimension"))
        known = [name for name, _ in self.dimensions]
        faults = [
            f"there is no dimension '{name}'{hint(name, known)}" for name in values if name not in known
        ]
        try:
            root = search_dimensions.resolve(self.root, values.get)
        except ValueError as error:
            raise self._make_error([*faults, str(error)]) from None
        if faults:
            raise self._make_error(faults)
        return parse(render(root))

    def _make_error(self, messages: list[str]) -> RecipeError:
        return RecipeError(self.text, [Fault(0, len(self.text), message) for message in messages])


def parse(source: str | Expression) -> Recipe:
    """Parse and check a recipe.

    An expression is parsed as its text; a Recipe is returned unchanged. Raise RecipeError with all faults of
    the text, and no other error.
    """
    if isinstance(source, Recipe):
        return source
    if (fault := argument_fault("recipe", source, (str, Expression), "a text or an expression")) is not None:
        shown = describe_value(source)
        raise RecipeError(shown, [Fault(0, len(shown), fault.removeprefix("recipe: "))])
    text = source.operand_text() if isinstance(source, Expression) else source
    faults = FaultCollector(text)
    root = check_recipe(_parse_text(text, faults), faults)
    if root is None:
        raise RecipeError(text, faults)
    recipe = Recipe(root)
    if len(recipe.text) > MAX_LENGTH:
        faults.add(
            0, 1, f"expected at most {MAX_LENGTH} characters in canonical form, got {len(recipe.text)}"
        )
        raise RecipeError(text, faults)
    return recipe


def _filled(text: str, fillings: Mapping[str, str]) -> Recipe | None:
    """Return a recipe with its holes filled, from syntax trees that are known; None after a fault.

    It is what `parse` gives for the filled text, but saves reading that text: a study tries thousands of
    levels in one recipe. The places of faults need the text.
    """
    outer, inner = _known_syntax(text), {name: _known_syntax(each) for name, each in fillings.items()}
    if outer is None or None in inner.values():
        return None
    faults = FaultCollector("")
    root = check_recipe(_with_operands(outer, inner), faults)
    recipe = None if root is None or faults else Recipe(root)
    # text with more parentheses than this may be nested too deeply
    return (
        recipe if recipe and len(recipe.text) <= MAX_LENGTH and recipe.text.count("(") <= MAX_DEPTH else None
    )


def _known_syntax(text: str) -> Syntax | None:
    return _sound_syntax(text) if len(text) <= _SHORT else None


def _with_operands(syntax: Syntax, operands: Mapping[str, Syntax | None]) -> Syntax:
    """Return a syntax tree with the trees of its holes in their place."""
    match syntax:
        case HoleSyntax():
            return operands.get(syntax.name) or syntax
        case OperationSyntax():
            return replace(syntax, operands=tuple(_with_operands(each, operands) for each in syntax.operands))
        case CallSyntax(arguments=tuple(arguments)):
            filled = (replace(each, value=_with_operands(each.value, operands)) for each in arguments)
            return replace(syntax, arguments=tuple(filled))
        case _:
            return syntax


def parse_dimension(text: str) -> Dimension:
    """Parse a single search dimension, as in `integer(3, 40)`.

    Raise RecipeError, and no other error. Whether the values fit a parameter is only checked when the
    dimension fills a hole.
    """
    faults = FaultCollector(text)
    dimension = check_dimension(_parse_text(text, faults), faults)
    if dimension is None:
        raise RecipeError(text, faults)
    return dimension


def _parse_text(text: str, faults: FaultCollector) -> Syntax:
    if len(text) > MAX_LENGTH:
        faults.add(0, 1, f"expected at most {MAX_LENGTH} characters, got {len(text)}")
    elif not text.strip():
        faults.add(0, len(text), "expected a recipe, got nothing")
    if faults:
        raise RecipeError(text, faults)
    found = _sound_syntax(text) if len(text) <= _SHORT else None
    return parse_syntax(text, faults) if found is None else found


_SHORT = 100


@lru_cache(maxsize=65536)
def _sound_syntax(text: str) -> Syntax | None:
    """Return the syntax tree of a short text without faults, else None.

    Results are cached, because the level of a factor is read by itself and as an operand of the recipe.
    """
    faults = FaultCollector(text)
    syntax = parse_syntax(text, faults)
    return None if faults else syntax


def format_scalar(value: object) -> str | None:
    """Return a Python number or boolean as recipe text; None for any other value."""
    value = plain_value(value)
    if isinstance(value, bool):
        return render(value)
    if isinstance(value, float):
        return repr(float(value))  # numpy's float64 is a float too, but its own repr has its type's name
    return str(value) if isinstance(value, int) else None


def _combine(left: object, sign: str, right: object) -> Recipe:
    sides = [
        one.operand_text(sign) if isinstance(one, Expression) else format_scalar(one) for one in (left, right)
    ]
    return NotImplemented if None in sides else parse(f"{sides[0]} {sign} {sides[1]}")


def _operand(value: Value | Expression) -> str:
    return _operand_of(value.operand_text() if isinstance(value, Expression) else render(plain_value(value)))


@lru_cache(maxsize=4096)
def _operand_of(text: str) -> str:
    """Check a recipe text, and put an operation in parentheses.

    Results are cached, because grids and searches fill holes with few different texts.
    """
    faults = FaultCollector(text)
    syntax = _parse_text(text, faults)
    if faults:
        raise RecipeError(text, faults)
    return f"({text})" if isinstance(syntax, OperationSyntax) else text
