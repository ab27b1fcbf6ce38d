"""The product uses no private name of another package with a public alternative."""

from __future__ import annotations

import ast
import re
from functools import cache
from types import FunctionType

from torch import nn

from .product_classes import ROOT, own_classes, syntax_trees

KNOWN = {
    "blocks/costs.py: from torch.utils._python_dispatch import TorchDispatchMode",
    "blocks/costs.py: func._schema",
    "blocks/core/positional_encoding.py: from torch._C import _DisableFuncTorch",
    "blocks/core/operations.py: from torch._C import _are_functorch_transforms_active",
    "blocks/layers/recurrent.py: from torch._C._functorch import is_batchedtensor",
    "engine/optimisers/weights.py: from torch._dynamo.exc import TorchDynamoException",
    "engine/optimisers/weights.py: torch._dynamo",
    "engine/optimisers/weights.py: import torch._functorch.config as autograd_settings",
    "engine/optimisers/weights.py: body._compiled_call_impl",
    "engine/optimisers/weights.py: body._call_impl",
    "engine/core/resources.py: from torch._C import _cuda_getDeviceCount",
    "engine/probes/conformance.py: module._forward_hooks",
    "engine/run/search/samplers/search_observations.py: getattr(study, '_study', study)",
    "engine/run/ray_actor.py: from ray._private.state import state",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_exists",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_put",
    "tracking/libraries/trackio.py: self._markdown(table.markdown)._to_dict",
}
"""Private names without a public alternative; a comment beside each use says why."""

DOCUMENTED = {"_asdict", "_fields", "_replace", "_exit"}
"""Names of Python's named tuples and of `os` that are public in spite of the underscore."""

OVERRIDDEN = {
    "SobolSampler._find_sample_id",  # Optuna counts points in the study, which does not hold all of ours
}
"""Private methods of foreign classes that a class of ours overrides, each with its reason."""

_FOREIGN = r"(torch|optuna|ray)\b"


@cache
def _own_names() -> set[str]:
    """Return the names of functions, classes, variables and own attributes that the product defines."""
    found: set[str] = set()
    for node in (node for tree in syntax_trees().values() for node in ast.walk(tree)):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store())
            ):
                found.add(name)
            case _:
                pass
    return found


def _is_foreign(name: str, owner: str) -> bool:
    """Return whether a private attribute belongs to an object of another package."""
    if name not in _own_names() or re.match(rf"{_FOREIGN}|nn\b", owner):
        return name not in DOCUMENTED
    return owner != "self" and name in vars(nn.Module())


def _uses(tree: ast.Module) -> dict[str, int]:
    """Return the private names of other packages in a module, each with the line of its use."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if any(
                re.match(rf"{_FOREIGN}.*\._[a-z]", each.name, re.I) for each in names
            ):
                found[ast.unparse(node)] = node.lineno
            case ast.Call(
                func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(str(name)), *_]
            ) if re.match(r"_[a-zA-Z]", name):
                found[ast.unparse(node)] = node.lineno
            case ast.ImportFrom(module=str(module), level=0) if re.search(
                r"^(torch|optuna|ray)\b.*\b_[a-z]",
                f"{module} {' '.join(each.name for each in node.names)}",
                re.I,
            ):
                found[ast.unparse(node)] = node.lineno
            case ast.Attribute(attr=name) if re.match(r"_[a-zA-Z]", name):
                if _is_foreign(name, ast.unparse(node.value)):
                    found[ast.unparse(node)] = node.lineno
    return found


def test_no_module_uses_a_private_name_of_another_package():
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {use}"
        for path, tree in syntax_trees().items()
        for use in _uses(tree)
    }
    assert found == KNOWN


def test_a_comment_beside_each_private_name_says_why_it_is_used():
    for path, tree in syntax_trees().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for use, line in _uses(tree).items():
            assert any("#" in each for each in lines[max(line - 2, 0) : line + 2]), f"{path}: {use}"


def _private_overrides(classes: set[type]) -> set[str]:
    """Return the methods whose names begin with one underscore that override one of a foreign class."""
    kinds = FunctionType | property | classmethod | staticmethod
    return {
        f"{cls.__name__}.{name}"
        for cls in classes
        for name, value in vars(cls).items()
        # enum's `_name_` are documented
        if re.match("_[a-zA-Z].*[^_]$", name) and isinstance(value, kinds)
        for base in cls.__mro__[1:]
        if name in vars(base) and not base.__module__.startswith("activemem")
    }


def test_no_class_overrides_a_private_method_of_a_foreign_class():
    assert _private_overrides(own_classes()) == OVERRIDDEN


def test_private_names_are_found_in_every_form():
    text = """
import torch._functorch.config
from torch._C import _one
getattr(study, "_study", study)
torch._two
function._schema
module._parameters
self._of_a_base
named_tuple._replace
"""
    assert set(_uses(ast.parse(text))) == {
        "import torch._functorch.config",
        "from torch._C import _one",
        "getattr(study, '_study', study)",
        "torch._two",
        "function._schema",
        "module._parameters",
        "self._of_a_base",
    }
