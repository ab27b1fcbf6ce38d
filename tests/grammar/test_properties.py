"""Properties of any recipe, and of any text."""

from __future__ import annotations

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from activemem.grammar import Parameter, Recipe, RecipeError, analyse, parse, render
from activemem.grammar.canonical import option_label
from activemem.grammar.dimensions import resolve
from activemem.grammar.nodes import (
    ChoiceDimension,
    Dimension,
    HoleNode,
    IntegerDimension,
    Node,
    RealDimension,
    RepeatNode,
    Scalar,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    make_series,
)

from .strategies import CLOSED_RECIPES, blocks, compound, parameter_values

QUICK, MEASURED = (settings(deadline=None, max_examples=number) for number in (40, 10))

HOLES = st.sampled_from(["a", "mixer", "n_2"]).map(HoleNode)


def _open(parameter: Parameter) -> st.SearchStrategy[Value]:
    single = parameter_values(parameter)
    choices = st.lists(single, min_size=1, max_size=3, unique=True).map(
        lambda options: ChoiceDimension(tuple(options))
    )
    if parameter.kind in ("word", "boolean"):
        return single | choices | HOLES
    if parameter.kind == "real":
        reals = st.tuples(single, single).map(lambda r: RealDimension(min(r), max(r)))
        return single | choices | reals | HOLES
    ranges = st.tuples(single, single, st.integers(1, 3)).map(
        lambda r: IntegerDimension(min(r[:2]), max(r[:2]), r[2])
    )
    logs = st.tuples(single, single).map(lambda r: IntegerDimension(max(1, min(r)), max(1, *r), log=True))
    return single | choices | ranges | logs | HOLES


COUNTS = st.integers(1, 3) | HOLES | st.just(IntegerDimension(1, 3)) | st.just(ChoiceDimension((1, 3)))


def _spaces(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    options = st.lists(parts, min_size=1, max_size=3, unique=True).map(
        lambda found: ChoiceDimension(tuple(found))
    )
    return compound(parts, COUNTS) | options


ANY = st.recursive(blocks(_open) | HOLES, _spaces, max_leaves=8)


@QUICK
@given(ANY)
def test_a_recipe_is_read_back_as_it_was_rendered(root: Node):
    recipe = parse(render(root))
    assert recipe.root == root
    assert recipe.text == render(root)
    assert recipe == Recipe(root)


@QUICK
@given(ANY, st.randoms(use_true_random=False))
def test_shuffled_sums_are_the_same_recipe(root: Node, random):
    def shuffled(node: Value) -> Value:
        match node:
            case SumNode():
                parts = [shuffled(part) for part in node.parts]
                random.shuffle(parts)
                return SumNode(tuple(parts))
            case SeriesNode():
                return SeriesNode(tuple(shuffled(part) for part in node.parts))
            case RepeatNode():
                return RepeatNode(node.count, shuffled(node.body))
            case TiedNode():
                return TiedNode(shuffled(node.body))
            case ChoiceDimension():
                return ChoiceDimension(tuple(shuffled(option) for option in node.options))
            case _:
                return node

    assert Recipe(shuffled(root)).id == Recipe(root).id


WORDS = "sa conv ff choice integer real tied k= filter= heads=8 act=relu {mixer} __class__ 3 20 0 1.5 1e9"
SIGNS = "( ) { } , + * >> > - = ** ._ ' \" $ é 日"
PIECES = st.sampled_from([*WORDS.split(), *SIGNS.split(), "\u202e", "\x00", "\n"])


@QUICK
@given(st.text() | st.lists(PIECES, max_size=30).map(" ".join))
def test_any_text_is_a_recipe_or_a_recipe_error(text: str):
    try:
        recipe = parse(text)
    except RecipeError as error:
        assert error.text == text
        assert error.faults
        assert all(0 <= fault.start <= fault.end <= max(len(text), 1) for fault in error.faults)
        assert all(line.isprintable() for line in str(error).splitlines())
    else:
        assert parse(recipe.text).root == recipe.root


@QUICK
@given(CLOSED_RECIPES, st.data())
def test_a_damaged_recipe_is_a_recipe_or_a_recipe_error(root: Node, data: st.DataObject):
    text = render(root)
    place = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(place, min(place + 3, len(text))))
    damaged = (
        text[:place] + data.draw(st.sampled_from(["", "(", ")", ",", "0", "x", ">>", "{", "="])) + text[end:]
    )
    try:
        assert parse(parse(damaged).text).text == parse(damaged).text
    except RecipeError as error:
        assert error.text == damaged


@QUICK
@given(ANY, st.data())
def test_settling_every_dimension_leaves_a_recipe_without_any(root: Node, data: st.DataObject):
    answers: dict[str, Scalar] = {}

    def answer(name: str, dimension: Dimension) -> Scalar:
        if isinstance(dimension, ChoiceDimension):
            answers[name] = option_label(data.draw(st.sampled_from(dimension.options)))
        elif isinstance(dimension, RealDimension):
            answers[name] = data.draw(st.floats(dimension.low, dimension.high))
        else:
            steps = (dimension.high - dimension.low) // dimension.step
            answers[name] = dimension.low + dimension.step * data.draw(st.integers(0, steps))
        return answers[name]

    settled = resolve(root, answer)
    assert Recipe(settled).dimensions == ()
    assert Recipe(root).choose(answers).text == parse(render(settled)).text


@QUICK
@given(ANY)
def test_the_names_of_dimensions_are_unique(root: Node):
    found = [name for name, _ in Recipe(root).dimensions]
    assert len(set(found)) == len(found)


def _written_out(node: Node) -> Node:
    """Return the recipe with every repeat as a series of its copies."""
    match node:
        case RepeatNode(count=int(count), body=body):
            return make_series([_written_out(body)] * count) if count > 1 else _written_out(body)
        case SeriesNode():
            return make_series([_written_out(part) for part in node.parts])
        case _:
            return node


@MEASURED
@given(CLOSED_RECIPES, st.booleans(), st.sampled_from(["pre", "post"]))
def test_a_repeat_costs_what_its_copies_cost(root: Node, causal: bool, norm):
    def measured(recipe: Recipe):
        found = analyse(recipe, d_model=16, length=9, vocab=5, causal=causal, norm=norm)
        return found.parameters, found.flops, found.reach, found.state, found.window

    assert measured(Recipe(root)) == measured(Recipe(_written_out(root)))


@MEASURED
@given(CLOSED_RECIPES)
def test_the_figures_of_a_model_are_those_of_its_top_parts(root: Node):
    found = analyse(Recipe(root), d_model=16, length=9, vocab=5)
    assert found.parameters == sum(part.parameters for part in found.tree.parts)
    assert found.flops == sum(part.flops for part in found.tree.parts)
    assert found.reach.left == reduce(lambda total, part: total + part.reach.left, found.tree.parts, 0)
