"""The hint at a key that is written in [task], but belongs to another table, is right for each task."""

import json
import re

import pytest

from activemem import StudyError, load_study
from activemem.studies.catalog.tasks import TASKS, TaskKind, task_names
from activemem.studies.text import KEY_OWNERS

from ..study_texts import study_text

VALUES = {
    "curriculum": {"start": 5},
    "cutoffs": [1],
    "flops": 1e9,
    "label_smoothing": 0.5,
    "lengths": [9, 9],
    "sampling": 0.5,
    "tied": True,
    "tokens": 100_000,
}
"""Valid values of the keys of other tables that some tasks refuse."""

OTHER_KEYS = {key for owner in KEY_OWNERS.values() for key in owner.keys_of_table()}
ROWS = {"path": "rows.jsonl", "dev": 0.2, "test": 0.2}
TASK_KEYS = {
    "language_model": {"corpus": "paradise-lost"},
    "parsing": {"corpus": "wsj-sample", "tokens": "words"},
    "sequence_classification": {"corpus": ROWS, "tokens": "words"},
    "sequence_regression": {"corpus": ROWS, "tokens": "words"},
    "token_classification": {"corpus": ROWS | {"label": "tags"}},
    "translation": {"corpus": "multi30k-en-fr", "tokens": "words"},
}
RECIPES = {
    TaskKind.CLASSIFICATION: "conv(k=3) >> mean_pool",
    TaskKind.REGRESSION: "conv(k=3) >> mean_pool",
    TaskKind.TRANSDUCTION: "seq2seq(lstm, lstm)",
}
HINT = re.compile(r"\[task\] unknown key '(\w+)' of \w+(.*)", re.DOTALL)


def messages(task, table, keys):
    """Return the faults of a study with this task and further keys in a table."""
    spec = TASKS[task]
    own = {
        "name": task,
        **TASK_KEYS.get(task, {}),
        **({"lengths": [12, 12]} if "lengths" in spec.keys else {}),
    }
    train = {"curriculum": None, **({"lengths": [9, 9]} if spec.settings.trains_on_lengths else {})}
    train |= {"lengths": None} if "curriculum" in keys else {}
    train |= {"steps_per_epoch": None} if {"flops", "tokens"} & keys.keys() else {}
    tables = {"task": own, "train": train, "model": {"recipe": RECIPES.get(spec.kind, "conv(k=3)")}}
    tables[table] |= keys
    try:
        load_study(study_text(**tables, factors={"seed": [0]}))
    except StudyError as error:
        return error.messages
    return ()


@pytest.mark.parametrize("task", task_names())
def test_a_key_of_another_table_is_sent_there_if_the_task_can_use_it(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"a {number}", "label": number % 2, "tags": "A B"} for number in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    misplaced = dict.fromkeys(OTHER_KEYS - TASKS[task].settings.model_fields.keys(), 1)
    hints = dict(found.groups() for each in messages(task, "task", misplaced) if (found := HINT.match(each)))
    assert hints.keys() == misplaced.keys()
    for key, hint in hints.items():
        named = re.fullmatch(r"; write it in \[(\w+)\]", hint)
        (owner, *_) = [name for name, table in KEY_OWNERS.items() if key in table.keys_of_table()]
        faults = messages(task, owner, {key: VALUES[key]}) if key in VALUES else ()
        if named:
            assert (named[1], faults) == (owner, ())
        elif hint == ", which does not use it: remove it":
            assert key == "scheduled_sampling" or any(
                each.startswith((f"[{owner}] {key}:", f"[{owner}] {key} ")) for each in faults
            )
