"""The floors of ARCHITECTURE.md: what a call loads, and what is imported by a text."""

import ast
import json
import os
import subprocess
import sys

import pytest

from .product_classes import ROOT, nodes_of, syntax_trees
from .study_texts import study_text

FOLDERS = {
    "grammar": set(),
    "storage": set(),
    "studies": {"grammar", "storage"},
    "reporting": {"grammar", "storage", "studies"},
}
"""The folders below each folder. `blocks` may measure a cost, so that a plan and an analysis load it."""

READ = study_text(
    factors={"mixer": ["sa", "conv(k=3)"], "task": ["sort"], "seed": [0, 1]},
    table=[{"name": "sizes", "rows": "mixer", "columns": "task", "value": "parameters"}],
    curve=[{"name": "bars", "kind": "bar", "x": "mixer", "value": "parameters"}],
    claim=[{"name": "larger", "holds": "parameters[mixer=sa] > parameters[mixer='conv(k=3)']"}],
)

CALLS = {
    "activemem.parse('sa >> ff(64)')": {"grammar"},
    "activemem.analyse('sa >> ff(64)', d_model=8, vocab=8, length=8)": {"grammar", "blocks"},
    "activemem.Store('results')": {"storage"},
    "activemem.load_study(text)": {"studies"},
    "activemem.load_study('quickstart')": {"studies"},
    "activemem.open_study(study).status": {"reporting"},
    "activemem.open_study(study).trials": {"reporting"},
    "str(activemem.open_study(study).plan())": {"reporting", "blocks"},
    "list(map(str, activemem.open_study(study).tables()))": {"reporting", "blocks"},
    "[each.render() for each in activemem.open_study(study).curves()]": {"reporting", "blocks"},
    "activemem.open_study(study).check_claims()": {"reporting", "blocks"},
    "activemem.open_study(study).report()": {"reporting", "blocks"},
}
"""The folders of each call. Those on the floors below may be loaded, too."""

PROBE = """\
import json, sys
import activemem
call, text = json.loads(sys.argv[1])
study = activemem.load_study(text) if "study)" in call else None
eval(call)
print(json.dumps(sorted({name.split(".")[1] for name in sys.modules if name.startswith("activemem.")})))
"""


@pytest.mark.parametrize("call", CALLS)
def test_a_call_loads_only_its_folder_and_those_below(call, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps([call, READ])],
        cwd=tmp_path,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    loaded = {name for name in json.loads(ran.stdout) if (ROOT / name).is_dir()}
    allowed = CALLS[call].union(*(FOLDERS.get(folder, set()) for folder in CALLS[call]))
    assert loaded - allowed == set()


def _texts(tree):
    """Yield the text of every import by a text, up to its first variable part, and its line."""
    for node in nodes_of(tree):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name in ("import_module", "importlib.import_module", "__import__"):
            text = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            yield text.value if isinstance(text, ast.Constant) else "", node.lineno


def _folder(place, text):
    """Return the folder with the module that a file imports by a text; "" for a library or the root."""
    if not text.startswith("."):
        first, _, rest = text.partition(".")
        return rest.partition(".")[0] if first == "activemem" else "" if first else "unknown"
    rest = text.lstrip(".")
    above = place.parts[: len(place.parts) - (len(text) - len(rest))]
    return (*above, *rest.split("."))[0]


def test_no_folder_imports_a_module_of_another_one_by_a_text():
    found = {}
    for path, tree in syntax_trees().items():
        place = path.relative_to(ROOT)
        for text, line in _texts(tree):
            if _folder(place, text) not in ("", place.parts[0]):
                found[f"{place}:{line}"] = text
    assert found == {}, "let the root provide the module (PROVIDED), or pass its function in"
