"""Unrun studies are counted without creating their trials; others are created."""

import pytest

from activemem.storage import Store
from activemem.studies.last_run import StudyOutline, outline, outline_studies
from activemem.studies.study import load_study, shipped_studies

SHIPPED = shipped_studies()


@pytest.mark.heavy
@pytest.mark.parametrize("path", SHIPPED.values(), ids=SHIPPED)
def test_an_outline_has_the_trials_of_the_whole_study(path):
    whole = load_study(path)
    assert outline(path) in (None, StudyOutline(title=whole.title, trials=whole.total))


def test_most_shipped_studies_are_outlined():
    assert sum(outline(path) is not None for path in SHIPPED.values()) > 0.8 * len(SHIPPED)


def test_a_study_that_has_run_is_loaded_and_others_are_outlined(tmp_path):
    store, study = Store(tmp_path), load_study("quickstart")
    store.records.save("quickstart", {"text": study.text, "overrides": [], "path": None})
    found = outline_studies(store)
    assert isinstance(found["algorithmic"], StudyOutline)
    assert found["quickstart"].trials == study.trials


def test_a_file_without_an_outline_is_loaded_as_a_whole_study(tmp_path):
    text = SHIPPED["quickstart"].read_text(encoding="utf-8")
    cases = {
        "plain": (text, 12),
        "budget": (text.replace("[study]", "[study]\nmax_parameters = 20000", 1), None),
        "faulty": (text.replace("[study]", "[study]\nnme = 1", 1), None),
        "broken": (text.replace("[study]", "[study", 1), None),
    }
    for name, (content, trials) in cases.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(content, encoding="utf-8")
        found = outline(path)
        assert (found and found.trials) == trials, name
