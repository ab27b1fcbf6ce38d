"""The registry of blocks, and the required properties of every block."""

from __future__ import annotations

import subprocess
import sys

import pytest

from activemem.grammar import (
    CostContext,
    Parameter,
    Role,
    Spec,
    as_bool,
    as_float,
    as_int,
    as_word,
    configure,
    lookup,
    parse,
    register,
    registered_names,
    render,
)
from activemem.grammar.checker import find_conflict
from activemem.grammar.nodes import BlockNode, Value
from activemem.grammar.vocabulary.spec import REQUIRED, builtin_names

from ...golden import GoldenTexts

HEAVY = ("torch", "ray", "optuna", "numpy", "polars", "pyarrow", "pydantic", "rich", "typer")


def _example(parameter: Parameter) -> Value:
    """Return a value of the parameter other than its default."""
    if parameter.kind == "word":
        return next(word for word in reversed(parameter.words) if word != parameter.default)
    if parameter.kind == "boolean":
        return not parameter.default
    if parameter.kind == "recipe":
        return BlockNode("lstm")
    if parameter.kind == "real":
        return (parameter.high or 0.0) / 2
    assert parameter.kind == "integer", f"no example for {parameter.kind}"
    value = int(parameter.low or 0) + 2
    return value if value != parameter.default else value + 1


def test_the_first_papers_blocks_are_there():
    first = {"cgru", "conv", "ff", "highway_conv", "persistent_conv", "sa"}
    assert first <= set(registered_names())
    assert list(registered_names()) == sorted(registered_names())


@pytest.mark.parametrize("name", builtin_names())
def test_a_block_describes_itself_and_its_text_is_read_back(name: str):
    spec = lookup(name)
    assert spec is not None
    assert all((spec.summary, spec.equation, spec.source, spec.owner))
    assert all(parameter.meaning for parameter in spec.parameters)
    block = BlockNode(name, tuple((parameter.name, _example(parameter)) for parameter in spec.parameters))
    if (conflict := find_conflict(spec, block)) is not None:  # of an odd number
        halved = "heads" if conflict == "head_split needs an even number of heads, got 3" else "head_width"
        block = BlockNode(name, tuple((one, 4 if one == halved else value) for one, value in block.arguments))
    if name == "sa":  # some of these are for attention without a span
        changed = {**dict(block.arguments), "pos": "relative"}
        block = BlockNode(
            name,
            tuple(each for each in changed.items() if each[0] not in ("kv_heads", "qk_norm", "logit_cap")),
        )
    if name == "seq2seq":  # attended inputs are as wide as the model
        block = BlockNode(name, tuple(each for each in block.arguments if each[0] != "units"))
    assert parse(render(block)).root == block


@pytest.mark.parametrize("name", builtin_names())
@pytest.mark.parametrize("causal", [False, True])
def test_a_block_never_reaches_into_the_future_of_a_causal_model(name: str, causal: bool):
    spec = lookup(name)
    assert spec is not None
    required = [p for p in spec.parameters if p.default is REQUIRED]
    settings = spec.settings(BlockNode(name, tuple((p.name, _example(p)) for p in required)))
    reach = spec.reach(
        settings, CostContext(config=configure(d_model=8, causal=causal, dropout=0.0), length=40)
    )
    assert reach.left >= 0
    assert reach.right == 0 if causal else reach.right >= 0


def _spec(name: str, *parameters: Parameter) -> Spec:
    sa = lookup("sa")
    assert sa is not None
    return Spec(
        name=name,
        role=Role.MIXER,
        parameters=parameters,
        summary="",
        equation="",
        source="",
        reach=sa.reach,
    )


def test_a_name_that_is_taken_is_refused_with_its_owner(golden):
    with golden.raises(ValueError):
        register(_spec("sa"))


def test_a_word_of_the_language_is_no_name_for_a_block(golden):
    with golden.raises(ValueError):
        register(_spec("choice"))


def _parameter(name: str, *, bare: bool = False) -> Parameter:
    return Parameter(name=name, kind="integer", positional=bare, meaning="")


@pytest.mark.parametrize(
    "spec",
    [
        _spec("no name"),
        _spec("über"),
        _spec("fine", _parameter("2nd")),
        _spec("fine", _parameter("first"), _parameter("second", bare=True)),
    ],
    ids=["space", "letter", "parameter", "position"],
)
def test_a_block_that_could_not_be_written_is_refused(spec: Spec, golden: GoldenTexts):
    with golden.raises(ValueError):
        register(spec)
    assert lookup(spec.name) is None


@pytest.mark.parametrize(
    ("read", "kind", "value"),
    [(as_bool, "boolean", True), (as_int, "integer", 3), (as_float, "real", 0.5), (as_word, "word", "silu")],
)
def test_each_kind_of_parameter_has_a_reader_for_blocks_of_other_packages(read, kind, value):
    words = (value,) if isinstance(value, str) else ()
    spec = _spec("theirs", Parameter(name="given", kind=kind, default=value, words=words, meaning=""))
    assert read(spec.settings(BlockNode("theirs")), "given") == value
    with pytest.raises(AssertionError):
        read({"given": BlockNode("lstm")}, "given")


def test_the_grammar_loads_nothing_heavy():
    program = f"import sys, activemem.grammar; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
