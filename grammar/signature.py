"""Functions that describe a block's parameters as text."""

from __future__ import annotations

from .canonical import render
from .nodes import BlockNode, Value
from .vocabulary.spec import REQUIRED, Parameter, Spec


def signature(spec: Spec) -> str:
    """Return a block's signature, such as `conv(k, act=relu)`, or its bare name if it has no parameters."""
    defaults = [(parameter.name, default_text(parameter)) for parameter in spec.parameters]
    texts = [name if default is None else f"{name}={default}" for name, default in defaults]
    texts += ["…"] if spec.package else []
    return f"{spec.name}({', '.join(texts)})" if texts else spec.name


def describe_values(parameter: Parameter) -> str:
    """Describe the values of a parameter, as in `whole number, 1 to 1024` or `relu, gelu or tanh`."""
    match parameter.kind:
        case "integer":
            return "whole number" + _range(parameter)
        case "real":
            return "number" + _range(parameter)
        case "word":
            *others, last = parameter.words
            return f"{', '.join(others)} or {last}" if others else last
        case "boolean":
            return "true or false"
        case "name":
            return f"a name, such as {parameter.words[0]}"
        case _:
            return "a recipe"


def default_text(parameter: Parameter) -> str | None:
    """Return a parameter's default as recipe text; None for a required parameter."""
    return None if parameter.default is REQUIRED else render(parameter.default)  # pyright: ignore[reportArgumentType] -- any other default is a value


def example(spec: Spec) -> BlockNode:
    """Return the block with a small value for each required parameter, as in `conv(k=4)`."""
    needed = [parameter for parameter in spec.parameters if parameter.default is REQUIRED]
    return BlockNode(spec.name, tuple((parameter.name, _example_value(parameter)) for parameter in needed))


def _example_value(parameter: Parameter) -> Value:
    low, high = parameter.low, parameter.high
    match parameter.kind:
        case "integer" | "real":
            small = 4.0 if parameter.kind == "integer" else 1.0
            bounded = min(max(small, small if low is None else low), small if high is None else high)
            return int(bounded) if parameter.kind == "integer" else float(bounded)
        case "word" | "name":
            return parameter.words[0]
        case "boolean":
            return False
        case _:
            return BlockNode("sa")


def _range(parameter: Parameter) -> str:
    match parameter.low, parameter.high:
        case None, None:
            return ""
        case low, None:
            return f", at least {low}"
        case None, high:
            return f", at most {high}"
        case low, high:
            return f", {low} to {high}"
