"""`docs/how-to/my-data.md`: its studies train, and their models work without the files."""

import random
import re
from pathlib import Path

import pytest

from activemem import load_model, load_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.data.text.corpus import open_corpus
from activemem.storage import Store
from activemem.studies import load_last_run

from ..reporting.serve.conftest import get, serving

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "my-data.md").read_text(encoding="utf-8")
STUDIES = {
    re.search(r'^name = "(\w+)"$', text, re.MULTILINE)[1]: text
    for text in re.findall(r"^```toml\n(\[study\]\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
}
TASKS = {
    re.search(r'^name = "(\w+)"$', text, re.MULTILINE)[1]: text
    for text in re.findall(r"^```toml\n(\[task\]\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
}
SMALL = ["train.epochs=1", "train.steps_per_epoch=2", "model.d_model=8"]


def trained(folder, name, *overrides, task=None, recipe="2 * ({mixer} >> ff(128)) >> mean_pool"):
    """Train the page's study in a folder, then remove all files."""
    text = STUDIES[name].replace("2 * ({mixer} >> ff(128)) >> mean_pool", recipe)
    if task is not None:
        text = re.sub(r"\[task\].*?(?=\[train\])", lambda _: f"{TASKS[task]}\n", text, flags=re.DOTALL)
        text = text.partition("[[table]]")[0]
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    study = load_study(folder / f"{name}.toml", [*SMALL, *overrides])
    store = Store(folder / "results")
    assert run_study(study, store, Machine(data=folder / "data"), local=True).done == len(study.trials)
    for path in study.own_corpus.files.values():
        path.unlink()
    assert load_last_run(name, store).trials == study.trials
    return store, [load_model(path) for path in (folder / "results").rglob("*.safetensors")]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the page's first study and a text."""
    (tmp_path / "letters.toml").write_text(STUDIES["letters"], encoding="utf-8")
    lines = (f"Dear reader, this is letter {number} of many, naïve and short.\n" for number in range(600))
    (tmp_path / "letters.txt").write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("tokens", ["characters", "words", "bpe"])
def test_the_study_of_a_text_trains_and_its_model_is_used_without_the_text(folder, tokens):
    _, (model,) = trained(folder, "letters", f"task.tokens={tokens}", "task.pieces=310")
    assert "".join(model.generate("Dear ", max_symbols=20, seed=1))


def test_a_machine_without_the_content_and_one_with_another_say_so(folder, golden):
    study = load_study(folder / "letters.toml")
    (trial,) = study.trials
    with golden.raises(DataError):
        open_corpus(trial.settings.task, folder / "data")
    (folder / "letters.txt").write_text("another", encoding="utf-8")
    with golden.raises(DataError):
        run_study(study, Store(folder / "results"), Machine(data=folder / "data"), local=True)


def test_the_study_of_labelled_sequences_learns_and_its_model_names_the_classes(tmp_path):
    draw = random.Random(0)
    (example,) = re.findall(r"^```\n(review,opinion\n.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lines = [example]
    for number in range(400):
        opinion = ("good", "bad")[number % 2]
        words = [draw.choice(("film", "plot", "and", "the")) for _ in range(draw.randint(2, 9))]
        words.insert(draw.randrange(len(words)), {"good": "great", "bad": "dull"}[opinion])
        lines.append(f'"{" ".join(words)}, ""so"" they say",{opinion}\n')
    (tmp_path / "reviews.csv").write_text("".join(lines), encoding="utf-8")
    store, models = trained(
        tmp_path,
        "reviews",
        "train.epochs=2",
        "train.steps_per_epoch=40",
        "train.optimizer.lr=0.01",
        "model.d_model=16",
        "factors.seed=[0]",
        'factors.mixer=["conv(k=5)"]',
        "task.pieces=300",
    )
    for model in models:
        assert model.file.metrics["test_accuracy"] > 0.9
        assert {"dev_macro_f1", "test_macro_f1", "dev_ece", "test_ece"} <= model.file.metrics.keys()
        assert list(model.predict(["A great film", "dull"])) == ["good", "bad"]
    with serving(store) as server:
        answer, page = get(server, "/study/reviews")
    assert answer.status == 200
    assert re.search(r"conv\(k=5\).*0\.9\d\d|1\.000", page, re.DOTALL)


ONE_TRIAL = ["factors.seed=[0]", 'factors.mixer=["conv(k=3)"]']


def test_numbers_are_learnt_and_predicted_in_their_own_unit(tmp_path):
    rows = [f"{'a' * (number % 5 + 1)} {number},{1000 + 500 * (number % 5)}" for number in range(100)]
    (tmp_path / "reviews.csv").write_text("\n".join(["review,stars", *rows]), encoding="utf-8")
    _, (model,) = trained(tmp_path, "reviews", *ONE_TRIAL, task="sequence_regression")
    (answer,) = map(float, model.predict(["aaa 7"]))
    assert 0 < answer < 5000
    assert {"dev_mae", "test_mae", "dev_r2", "test_r2"} <= model.file.metrics.keys()


def test_tokens_have_labels(tmp_path):
    (example,) = re.findall(r"`(\{\"words\".*?\})`", PAGE, re.DOTALL)
    rows = [" ".join(example.split()).replace("Ann", f"Ann{number}") for number in range(60)]
    (tmp_path / "tagged.jsonl").write_text("\n".join(rows), encoding="utf-8")
    steps = ["train.steps_per_epoch=30", "train.optimizer.lr=0.05"]
    recipe = "{mixer} >> ff(16)"
    _, (model,) = trained(tmp_path, "reviews", *ONE_TRIAL, *steps, task="token_classification", recipe=recipe)
    assert list(model.predict(["Ann12 sings"])) == ["NAME VERB"]
    assert model.file.metrics["test_accuracy"] == 1.0


def test_pairs_are_learnt_from_two_files(tmp_path):
    for name, words in (("letters.en", "dear reader"), ("letters.fr", "cher lecteur")):
        lines = "".join(f"{words} {number}\n" for number in range(300))
        (tmp_path / name).write_text(lines, encoding="utf-8")
    recipe = "seq2seq(gru, {mixer})"
    mixer = ['factors.mixer=["gru"]', "factors.seed=[0]", "model.position=none"]
    _, (model,) = trained(tmp_path, "reviews", *mixer, task="translation", recipe=recipe)
    assert "test_loss" in model.file.metrics
    assert len(list(model.predict(["dear reader 7"]))) == 1
