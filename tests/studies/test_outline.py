"""Unrun studies are counted without creating their trials; others are created."""

import json
from dataclasses import replace

import pytest

from activemem import load_study
from activemem.storage import Store
from activemem.storage.trial_files import STARTS_FILE
from activemem.studies.outlines import StudyOutline, known_traits, outline, outline_studies, traits
from activemem.studies.resolve.trial import settings_to_json
from activemem.studies.study import shipped_studies

from ..reporting.conftest import made_row

SHIPPED = shipped_studies()


@pytest.mark.heavy
@pytest.mark.parametrize("path", SHIPPED.values(), ids=SHIPPED)
def test_an_outline_has_the_trials_of_the_whole_study_which_it_does_not_stand_for_once_one_is_known(path):
    whole, found = load_study(path), outline(path, ())
    assert found in (None, StudyOutline(title=whole.title, trials=whole.total))
    for each in {traits(json.loads(settings_to_json(trial.settings))) for trial in whole.trials}:
        assert outline(path, {each}) is None


def test_most_shipped_studies_are_outlined():
    assert sum(outline(path, ()) is not None for path in SHIPPED.values()) > 0.8 * len(SHIPPED)


def test_a_study_is_made_where_another_has_run_or_begun_one_of_its_trials(tmp_path):
    trial = load_study("quickstart").trials[0]
    store = Store(tmp_path / "ran")
    store.write(replace(made_row(trial, {"loss": 1.0}, 0), study="mine", settings=text_of(trial)), [])
    begun = Store(tmp_path / "begun")
    starts = begun.files.checkpoint_dir(trial.id) / STARTS_FILE
    starts.parent.mkdir(parents=True)
    starts.write_text(trial.to_json() + "\n", encoding="utf-8")
    for each in (store, begun):
        found = outline_studies(each)
        assert isinstance(found["algorithmic"], StudyOutline)
        assert found["quickstart"] == load_study("quickstart")


def test_files_that_are_no_trials_are_passed_over(tmp_path):
    store = Store(tmp_path)
    for name, content in (("a" * 16, "no json\n"), ("b" * 16, "[]\n"), ("c" * 16, "{}\n")):
        starts = store.files.checkpoint_dir(name) / STARTS_FILE
        starts.parent.mkdir(parents=True)
        starts.write_text(content, encoding="utf-8")
    assert known_traits(store) == set()


def text_of(trial):
    return settings_to_json(trial.settings)


def test_a_file_without_an_outline_is_loaded_as_a_whole_study(tmp_path):
    text = SHIPPED["quickstart"].read_text(encoding="utf-8")
    cases = {
        "plain": (text, 12),
        "budget": (text.replace("[study]", "[study]\nlimits.parameters = '<= 20000'", 1), None),
        "faulty": (text.replace("[study]", "[study]\nnme = 1", 1), None),
        "broken": (text.replace("[study]", "[study", 1), None),
    }
    for name, (content, trials) in cases.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(content, encoding="utf-8")
        found = outline(path, ())
        assert (found and found.trials) == trials, name
