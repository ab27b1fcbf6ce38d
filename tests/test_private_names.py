"""The product uses no private name of torch, Optuna or Ray with a public alternative."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("blocks", "cli", "engine", "grammar", "reporting", "storage", "studies")
KNOWN = {
    "blocks/costs.py: from torch.utils._python_dispatch import TorchDispatchMode",
    "blocks/core/positional_encoding.py: from torch._C import _DisableFuncTorch",
    "blocks/core/operations.py: from torch._C import _are_functorch_transforms_active",
    "blocks/layers/recurrent.py: from torch._C._functorch import is_batchedtensor",
    "blocks/testing/fixtures.py: storage._cdata",
    "blocks/testing/fixtures.py: parameter.untyped_storage()._cdata",
    "engine/optimisers/weights.py: from torch._dynamo.exc import TorchDynamoException",
    "engine/optimisers/weights.py: torch._dynamo",
    "engine/core/resources.py: from torch._C import _cuda_getDeviceCount",
    "engine/run/ray_actor.py: from ray._private.state import state",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_exists",
    "engine/run/ray_actor.py: from ray.experimental.internal_kv import _internal_kv_put",
}
"""Private names without a public alternative."""


def _uses(path: Path) -> set[str]:
    """Return the private names of torch, Optuna and Ray in a module."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"^\s*(import|from) (torch|optuna|ray)\b", text, re.MULTILINE):
        return set()
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if re.search(
                r"^(torch|optuna|ray)\b.*\b_[a-z]",
                f"{module} {' '.join(each.name for each in node.names)}",
                re.I,
            ):
                found.add(ast.unparse(node))
            case ast.Attribute(attr=name) if re.match(r"_[a-zA-Z]", name):
                owner = ast.unparse(node.value)
                if re.match(r"(torch|optuna|ray|nn|space|storage|functional)\b", owner) or name == "_cdata":
                    found.add(ast.unparse(node))
    return found


def test_no_module_uses_a_private_name_of_torch_optuna_or_ray():
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert len(paths) > 200
    found = {f"{path.relative_to(ROOT).as_posix()}: {use}" for path in paths for use in _uses(path)}
    assert found == KNOWN
