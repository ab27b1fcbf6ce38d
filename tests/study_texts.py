"""The text of a small study, which tests modify."""

import json
from collections.abc import Mapping

TABLES = {
    "study": {"name": "tiny", "title": "A tiny study"},
    "model": {"recipe": "2 * ({mixer} >> ff(8))", "d_model": 8},
    "task": {"name": "{task}"},
    "train": {
        "optimizer": {"name": "adam", "lr": 0.001},
        "batch_size": 4,
        "epochs": 2,
        "steps_per_epoch": 2,
        "curriculum": {"start": 5},
    },
    "recipes": {},
    "factors": {},
    "when": {},
    "search": {},
    "decode": {},
}


def study_text(space=None, **tables):
    """Return the tiny study with these keys added or replaced; None removes a key.

    A list of mappings is an array of tables: `cells`, `table`, `curve`, `claim`.
    """
    mappings = {name: own | tables.pop(name, {}) for name, own in TABLES.items()} | {
        "search.space": space or {}
    }
    arrays = [(f"[[{name}]]", each) for name, several in tables.items() for each in several]
    found = [(f"[{name}]", keys) for name, keys in mappings.items()] + arrays
    return "\n".join(_table(head, keys) for head, keys in found if keys)


def replaced(text, *pairs):
    """Return the text with replacements, each of which must occur."""
    for old, new in pairs:
        assert old in text, f"expected {old!r} in the text of the study:\n{text}"
        text = text.replace(old, new)
    return text


def _table(head, keys):
    return "\n".join(
        [head, *(f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None), ""]
    )


def _toml(value):
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float) and 0 < value < 0.01:
        mantissa, exponent = f"{value:e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return json.dumps(value, ensure_ascii=False)


SEARCH_OF_RUNGS = study_text(
    study={"name": "rungs", "title": "How far a convolution should see"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 27},
    factors={"seed": [0]},
    search={
        "sampler": "random",
        "trials": 18,
        "metric": "loss",
        "scheduler": {"name": "asha", "fidelity": "width", "reduction": 3},
    },
    space={"k": "integer(2, 40)", "width": "integer(8, 72)"},
)
"""A search that trains points at three widths, from rung to rung."""


def notes_on(plan, label):
    """Return the texts of a plan's notes with a label."""
    return [note.text for note in plan.notes if note.label == label]
