"""The hint at a key that is written in [task], but belongs to another table, is right for each task."""

import json
import re

import pytest

from activemem import StudyError, load_study
from activemem.studies.catalog.tasks import TASKS, TaskKind, task_names
from activemem.studies.text.strict_model import KEY_OWNERS

from ..study_texts import study_text

OTHER_KEYS = {key for owner in [*KEY_OWNERS.values()] for key in owner.keys_of_table()}
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


@pytest.mark.parametrize("task", task_names())
def test_a_key_of_another_table_is_sent_there(task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"text": f"a {number}", "label": number % 2, "tags": "A B"} for number in range(40)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    spec = TASKS[task]
    misplaced = dict.fromkeys(OTHER_KEYS - spec.settings.model_fields.keys(), 1)
    own = {"name": task, **TASK_KEYS.get(task, {}), **misplaced}
    own |= {"lengths": [12, 12]} if "lengths" in spec.keys else {}
    model = {"recipe": RECIPES.get(spec.kind, "conv(k=3)")}
    with pytest.raises(StudyError) as error:
        load_study(study_text(task=own, train={"curriculum": None}, model=model, factors={"seed": [0]}))
    found = (HINT.match(each) for each in error.value.messages)
    hints = dict(each.groups() for each in found if each)
    assert hints.keys() == misplaced.keys()
    for key, hint in hints.items():
        named = re.fullmatch(r"; write it in \[(\w+)\]", hint)
        owner = next(name for name, table in [*KEY_OWNERS.items()] if key in table.keys_of_table())
        if named:
            assert named[1] == owner
        else:
            assert hint
