"""The product uses no private name of another package with a public alternative."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from types import FunctionType

import pytest
from torch import nn

from .product_classes import ROOT, nodes_of, own_classes, syntax_trees

KNOWN = {
    "blocks/costs.py: from torch.utils._python_dispatch import TorchDispatchMode",
    "blocks/costs.py: getattr(func, '_schema', None)",
    "engine/optimisers/weights.py: from torch._dynamo.exc import TorchDynamoException",
    "engine/optimisers/weights.py: import torch._functorch.config as settings",
    "engine/optimisers/weights.py: body._compiled_call_impl",
    "engine/optimisers/weights.py: body._call_impl",
    "engine/core/resources.py: getattr(torch._C, '_cuda_getDeviceCount', torch.cuda.device_count)",
    "engine/core/resources.py: torch._C",
    "engine/probes/conformance.py: getattr(module, '_forward_hooks', ())",
    "engine/run/ray_actor.py: from ray._private.state import state",
    "engine/run/ray_connection.py: from ray._private import services",
    "engine/run/ray_connection.py: from ray._raylet import GcsClient",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_exists",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_put",
    "tracking/libraries/trackio.py: self._markdown(table.markdown)._to_dict",
}
"""Private names without a public alternative; a comment beside each use says why."""

DOCUMENTED = {"_asdict", "_fields", "_replace", "_exit"}
"""Names of Python's named tuples and of `os` that are public in spite of the underscore."""

OVERRIDDEN = {
    "_MeasuringMode._should_skip_dynamo",  # torch would import its compiler, to leave the mode uncompiled
}
"""Private methods of foreign classes that a class of ours overrides, each with its reason."""

_FOREIGN = r"(torch|optuna|ray)\b"


@cache
def _own_names() -> set[str]:
    """Return the names of functions, classes, variables and own attributes that the product defines."""
    found: set[str] = set()
    for node in (node for tree in syntax_trees().values() for node in nodes_of(tree)):
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


@cache
def _uses(tree: ast.Module) -> dict[str, int]:
    """Return the private names of other packages in a module, each with the line of its use."""
    found: dict[str, int] = {}
    for node in nodes_of(tree):
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


WITHOUT = """
import torch, torch._functorch.config
torch._functorch.config._config.pop("force_non_lazy_backward_lowering")
"""
"""Lines that take private names from torch for which there is a fallback."""

TRAINED = """
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings
torch.set_num_threads(1)
torch.compile = lambda call, **_: call
model = {"recipe": "lstm >> ff(8)", "d_model": 8}
train = {"optimizer": {"name": "adam", "lr": 1e-2}, "batch_size": 4, "epochs": 1, "steps_per_epoch": 3,
    "curriculum": {"start": 5}}
settings = {"model": model, "task": {"name": "not"}, "train": {**train, "compile": True}, "seed": 0}
print(Training.begin(TrialSettings.model_validate(settings), torch.device("cpu")).advance()["loss"])
"""


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.heavy  # trains twice in processes of their own
def test_a_torch_without_private_names_trains_the_same():
    with_names, without = float(_printed("import torch" + TRAINED)), float(_printed(WITHOUT + TRAINED))
    assert without == pytest.approx(with_names, rel=1e-5)


NEEDED = """
import torch.utils.flop_counter
import torch.utils._python_dispatch as dispatch
del dispatch.TorchDispatchMode
from activemem import ActivememError, load_study
from activemem.engine.run.search.conformance import STUDY
from activemem.studies.resolve.costs import model_cost
try:
    print("no error", model_cost("parameters", load_study(STUDY, ["model.d_model=37"]).examples[0].settings))
except ActivememError as error:
    print(error)
"""


@pytest.mark.heavy
def test_a_torch_without_a_name_that_is_needed_says_so_and_what_to_do():
    found = _printed(NEEDED).strip()
    assert re.fullmatch(r"costs cannot.*TorchDispatchMode, got torch .* install another version.*", found)
