"""`docs/data.md`: the study of a text of one's own trains, and its model is used without the file."""

import re
from pathlib import Path

import pytest

from activemem import load_model
from activemem.engine.core.resources import Machine
from activemem.engine.corpora import DataError
from activemem.engine.data import open_corpus
from activemem.engine.run.driver import run_study
from activemem.storage import Store
from activemem.studies.last_run import load_last_run
from activemem.studies.study import load_study

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Your own data$(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)[1]
(STUDY,) = re.findall(r"^```toml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
SMALL = ["train.epochs=1", "train.steps_per_epoch=2", "model.d_model=8"]


@pytest.fixture
def folder(tmp_path):
    """A folder with the study of the page and a text."""
    (tmp_path / "letters.toml").write_text(STUDY, encoding="utf-8")
    lines = (f"Dear reader, this is letter {number} of many, naïve and short.\n" for number in range(600))
    (tmp_path / "letters.txt").write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("tokens", ["characters", "words", "bpe"])
def test_the_study_of_the_page_trains_and_its_model_is_used_without_the_text(folder, tokens):
    study = load_study(folder / "letters.toml", [*SMALL, f"task.tokens={tokens}", "task.pieces=310"])
    store, machine = Store(folder / "results"), Machine(data=folder / "data")
    assert run_study(study, store, machine, local=True).done == 1
    (folder / "letters.txt").unlink()
    assert load_last_run("letters", store).trials == study.trials
    (path,) = (folder / "results").rglob("*.safetensors")
    assert "".join(load_model(path).generate("Dear ", max_symbols=20, seed=1))


def test_a_machine_without_the_content_and_one_with_another_say_so(folder):
    study = load_study(folder / "letters.toml")
    (trial,), (sha256,) = study.trials, study.own_corpus.files
    name, place = trial.settings.task.corpus.name, folder / "data" / "own"
    with pytest.raises(DataError) as missing:
        open_corpus(trial.settings.task, folder / "data")
    assert str(missing.value) == (
        f"{name}: expected {sha256} (.xz, .gz) in {place}, got nothing; "
        "copy it there from the data folder of the machine that runs the study"
    )
    (folder / "letters.txt").write_text("another", encoding="utf-8")
    with pytest.raises(DataError, match="has changed since the study was read: expected sha256:"):
        run_study(study, Store(folder / "results"), Machine(data=folder / "data"), local=True)
