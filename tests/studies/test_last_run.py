"""A study from its last run, by name, and errors if it cannot be read here."""

from dataclasses import replace
from pathlib import Path

import pytest

from activemem import StudyError, load_study, open_study
from activemem.storage import Store
from activemem.studies import load_last_run
from activemem.studies.text.errors import StudyFault

from ..reporting.conftest import made_row
from ..study_texts import study_text

TEXT = study_text(task={"name": "reverse"}, factors={"mixer": ["sa", "conv(k=3)"]})


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("look.py", "the plug-in look.py: load it with --plugin look.py, or load_plugin in Python"),
        (
            "the script look.py",
            "the script look.py: put what it registers into a plug-in file, and load the file",
        ),
        (
            "the notebook cell of block convoluted",
            "the notebook cell of block convoluted: "
            "run this cell again, or put it into a plug-in file, and load the file",
        ),
    ],
)
def test_a_study_whose_plug_in_is_not_loaded_names_it(tmp_path, code, told):
    found, store = load_study(TEXT), Store(tmp_path)
    row = made_row(found.trials[0], {"loss": 1.0}, 0)
    store.write(replace(row, version=f"0.1.0 with a-package 2.0 0123abcd, {code} 4567cdef"), [])
    text = TEXT.replace("conv(k=3)", "convoluted(k=3)")
    store.records.save(found.name, {"text": text, "overrides": []})
    with pytest.raises(StudyError) as caught:
        load_last_run(found.name, store)
    assert str(caught.value).startswith(f"{found.name} (last run): 2 faults\n")
    assert [fault.message for fault in caught.value.faults][-1] == f"the stored trials used {told}"


def test_a_study_that_has_used_no_plug_in_has_its_own_faults_alone(tmp_path):
    found, store = load_study(TEXT), Store(tmp_path)
    store.write(made_row(found.trials[0], {"loss": 1.0}, 0), [])
    store.records.save(found.name, {"text": TEXT.replace("sa", "sb"), "overrides": []})
    with pytest.raises(StudyError) as caught:
        load_last_run(found.name, store)
    assert all("plug-" not in fault.message for fault in caught.value.faults)


def test_a_study_that_this_version_refuses_says_how_to_show_its_other_levels(tmp_path):
    store = Store(tmp_path)
    text = TEXT.replace("conv(k=3)", "lstm(20)")
    store.records.save("mixers", {"text": text, "overrides": [], "path": "old/mixers.toml"})
    with pytest.raises(StudyError, match=r"delete such levels from old/mixers\.toml, and give"):
        load_last_run("mixers", store)


def test_a_recorded_path_of_thousands_of_digits_is_shortened(tmp_path):
    store = Store(tmp_path)
    text = TEXT.replace("conv(k=3)", "lstm(20)")
    store.records.save("mixers", {"text": text, "overrides": [], "path": "9" * 5000})
    with pytest.raises(StudyError, match=r"delete such levels from 9{299}…, and give"):
        load_last_run("mixers", store)


def test_faults_are_in_the_order_of_numbers_of_any_length():
    messages = [f"level {number}" for number in ("9" * 5000, "10", "9", "1" + "0" * 5000)]
    faults = StudyError("study", [StudyFault(message=each) for each in messages]).faults
    assert [fault.message for fault in faults] == [messages[each] for each in (2, 1, 0, 3)]


def test_a_file_that_has_changed_since_its_last_run_is_named_once(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    found, store = load_study(TEXT), Store(tmp_path)
    name = "changed-once"
    text = TEXT.replace(f'"{found.name}"', f'"{name}"')
    store.records.save(name, {"text": text, "overrides": [], "path": str(tmp_path / f"{name}.toml")})
    Path(f"{name}.toml").write_text(text, encoding="utf-8")
    load_last_run(name, store)
    assert not caplog.messages
    Path(f"{name}.toml").write_text(text.replace("conv(k=3)", "conv(k=5)"), encoding="utf-8")
    for _ in range(2):
        assert load_last_run(name, store).factors["mixer"] == ("sa", "conv(k=3)")
    told = f"{name}.toml has changed since its last run, which is shown; for the file, give its path"
    assert caplog.messages == [told]


@pytest.mark.parametrize(("ran", "named"), [("hers/mixers.toml", "hers/mixers.toml"), (None, "a text")])
def test_a_file_that_did_not_run_last_is_not_called_changed(tmp_path, monkeypatch, caplog, ran, named):
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path)
    name = f"other-{ran is None}"
    text = TEXT.replace(f'"{load_study(TEXT).name}"', f'"{name}"')
    store.records.save(name, {"text": text, "overrides": [], "path": ran})
    Path(f"{name}.toml").write_text(text.replace("conv(k=3)", "conv(k=5)"), encoding="utf-8")
    load_last_run(name, store)
    (told,) = caplog.messages
    assert told.startswith(f"{name}.toml is not what ran last, which is shown: {named}")


FAULTY_CLAIM = '[[claim]]\nname = "c"\nsource = "s"\nholds = "loss[mixer=gru] < 1"\n'


def test_the_faults_of_claims_are_logged_once_and_raised_where_claims_are_asked_for(tmp_path, caplog):
    (file := tmp_path / "mine.toml").write_text(TEXT + FAULTY_CLAIM, encoding="utf-8")
    opened = open_study(file, tmp_path)
    assert opened.trials.is_empty()
    (logged,) = caplog.messages
    assert "unknown level 'gru' of mixer" in logged
    for ask in (opened.check_claims, lambda: load_last_run(str(file), Store(tmp_path), reads=["claim"])):
        with pytest.raises(StudyError, match="unknown level 'gru' of mixer"):
            ask()
    assert caplog.messages == [logged]


def test_a_study_whose_last_run_has_checked_it_is_not_checked_again(tmp_path, caplog):
    (file := tmp_path / "mine.toml").write_text(TEXT + FAULTY_CLAIM, encoding="utf-8")
    Store(tmp_path).records.save(load_study(TEXT).name, {"text": TEXT + FAULTY_CLAIM, "overrides": []})
    assert load_last_run(str(file), Store(tmp_path)).seeds and not caplog.messages
    with pytest.raises(StudyError, match="unknown level 'gru' of mixer"):
        load_study(file)
