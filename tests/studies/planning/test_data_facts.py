"""Data in plans: summaries, warnings, and errors."""

import json

import pytest

from activemem import StudyError, load_study
from activemem.engine import Machine
from activemem.engine.corpora.files import keep_files
from activemem.engine.data.text.corpus import open_corpus
from activemem.engine.run.planning import on_machine
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.own_data import texts
from activemem.studies.planning.memory_estimates import step_memory
from activemem.studies.study import load_recorded_study

from ...study_texts import notes_on, study_text


def study(folder, name, corpus, *, recipe="conv(k=3) >> mean_pool", train=None, **keys):
    text = study_text(
        model={"recipe": recipe},
        task={"name": name, "corpus": corpus, **keys},
        train={"curriculum": None, **(train or {})},
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return load_study(folder / "study.toml")


def optimiser_key(folder, *arguments, **keys):
    return make_plan(study(folder, *arguments, **keys), Store(folder / "results"))


def write_rows(path, rows):
    path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in rows))


def test_rows_classes_shared_rows_and_unseen_labels_are_in_the_plan(tmp_path, golden):
    train = [(f"row number {n}", ("yes", "no", "no")[n % 3]) for n in range(60)]
    write_rows(tmp_path / "train.jsonl", train)
    write_rows(tmp_path / "dev.jsonl", [("ROW  number 3", "yes"), ("unseen", "no")])
    write_rows(tmp_path / "test.jsonl", [("another", "maybe"), ("one", "no")])
    files = {split: f"{split}.jsonl" for split in ("train", "dev", "test")}
    plan = optimiser_key(tmp_path, "sequence_classification", files, tokens="words")
    golden(notes_on(plan, "data"))
    golden(notes_on(plan, "warning"))


def test_rare_classes_odd_labels_and_contradictory_rows_are_in_the_plan(tmp_path, golden):
    labels = ["walk", "Walk", "rest", "fall", "run", "nan", "1", "1.0"]
    rows = [(f"a b {n % 50}", label) for n, label in enumerate(labels * 10) for _ in range(len(label))]
    for split in ("train", "dev", "test"):
        write_rows(tmp_path / f"{split}.jsonl", rows)
    files = {split: f"{split}.jsonl" for split in ("train", "dev", "test")}
    plan = optimiser_key(tmp_path, "sequence_classification", files, tokens="symbols")
    golden(notes_on(plan, "data"))
    golden(notes_on(plan, "warning"))


def test_tokens_of_dev_and_test_that_are_not_in_train_are_counted(tmp_path, golden):
    for split, extra in {"train": "", "dev": " d", "test": " e e f"}.items():
        write_rows(tmp_path / f"{split}.jsonl", [(f"a b c{extra}", n % 2) for n in range(20)])
    files = {split: f"{split}.jsonl" for split in ("train", "dev", "test")}
    for tokens in ("symbols", "characters"):
        golden(notes_on(optimiser_key(tmp_path, "sequence_classification", files, tokens=tokens), "warning"))


def test_sequences_that_are_cut_or_left_out_are_counted(tmp_path, golden):
    rows = [(f"a b c d e {n}" if n % 2 else f"a b {n}", "") for n in range(60)]
    tags = [(text.split(), ["X", "Y", "X", "Y", None, -100][: len(text.split())]) for text, _ in rows]
    write_rows(tmp_path / "tags.jsonl", tags)
    found = optimiser_key(
        tmp_path, "token_classification", {"path": "tags.jsonl"}, recipe="conv(k=3)", longest=4
    )
    golden(notes_on(found, "data"))


@pytest.mark.parametrize(
    ("longest", "told"),
    [
        ([2, 9], "all rows of train are equal once they are cut (longest = 2): raise longest"),
        ([3, 9], ""),
        ([3, 4, 9], "longest = 4 and 9 give equal trainings: no row has more than 4 tokens"),
    ],
)
@pytest.mark.parametrize("tokens", ["symbols", "words"])
def test_rows_or_cells_that_a_longest_makes_equal_are_named(tmp_path, tokens, longest, told):
    write_rows(tmp_path / "rows.jsonl", [(f"a b {n} c", "XY"[n % 2]) for n in range(60)])
    keys = {"corpus": {"path": "rows.jsonl"}, "tokens": tokens, "longest": "{cut}"}
    text = study_text(
        model={"recipe": "conv(k=3) >> mean_pool"},
        task={"name": "sequence_classification", **keys},
        train={"curriculum": None},
        factors={"cut": longest},
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    plan = make_plan(load_study(tmp_path / "study.toml"), Store(tmp_path / "results"))
    assert [each for each in notes_on(plan, "warning") if "equal" in each] == ([told] if told else [])


@pytest.mark.parametrize("longest", [4, 9])
def test_lines_of_dev_and_test_that_are_too_long_to_be_scored_are_counted(tmp_path, longest, golden):
    for split in ("train", "dev", "test"):
        lines = ["a b c", "b c a b c a"] * 20 if split != "test" else ["a b c"] * 30 + ["b c a b c a"]
        (tmp_path / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    files = {split: f"{split}.txt" for split in ("train", "dev", "test")}
    keys = {"recipe": "conv(k=3)", "tokens": "words", "batching": "lines", "longest": longest}
    golden(notes_on(optimiser_key(tmp_path, "language_model", files, **keys), "data"))


def test_models_that_label_tokens_by_earlier_ones_alone_are_named_beside_others(tmp_path):
    write_rows(tmp_path / "tags.jsonl", [([f"a{n}", "b"], ["X", "Y"]) for n in range(60)])
    task = {"name": "token_classification", "corpus": {"path": "tags.jsonl"}}
    for mixers, told in ((["gru", "fox", "sa", "conv(k=3)"], 1), (["gru"], 0), (["sa"], 0)):
        text = study_text(task=task, train={"curriculum": None}, factors={"mixer": mixers})
        (tmp_path / "study.toml").write_text(text, encoding="utf-8")
        plan = make_plan(load_study(tmp_path / "study.toml"), Store(tmp_path / "results"))
        assert str(notes_on(plan, "data")).count("gru and fox cannot see later tokens") == told


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        # 9 words and an end, which is no input of a language model
        ("language_model", {"batching": "lines", "tokens": "words"}, 9),
        ("language_model", {"batching": "lines", "tokens": "words", "longest": 9}, 9),
        ("language_model", {"batching": "lines", "tokens": "words", "longest": 4}, 4),
        ("token_classification", {}, 9),
        ("token_classification", {"longest": 4}, 4),
    ],
)
def test_memory_is_that_of_the_longest_row_of_the_training_data(tmp_path, name, keys, expected):
    lines = [" ".join(["a", "b", "c"] * (1 + n % 3)) + ("" if n % 3 else f" {n}") for n in range(60)]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    write_rows(
        tmp_path / "tags.jsonl",
        [(line.split(), ["X" if word == "a" else "Y" for word in line.split()]) for line in lines],
    )
    path = {"language_model": "lines.txt", "token_classification": "tags.jsonl"}[name]
    plan = optimiser_key(tmp_path, name, {"path": path}, recipe="conv(k=3)", **keys)
    assert plan.memory[1].tokens == expected
    assert plan.memory[1] == step_memory(plan.trials[0].trial.settings, expected)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (
            [f"s{n} " + "w " * 30 for n in range(40)],
            "raise .task. longest",
        ),
        ([f"s{n}" for n in range(40)], None),
    ],
)
def test_pairs_that_are_all_too_long_are_a_fault_of_the_data(tmp_path, sources, expected):
    (tmp_path / "a.en").write_text("".join(f"{source}\n" for source in sources))
    (tmp_path / "a.fr").write_text("".join(f"t{n}\n" for n in range(40)))
    files, keys = {"source": "a.en", "target": "a.fr"}, {"tokens": "words", "longest": 10}
    if expected is None:
        plan = optimiser_key(tmp_path, "translation", files, recipe="seq2seq(gru, gru)", **keys)
        assert not notes_on(plan, "warning")
    else:
        with pytest.raises(StudyError, match=expected):
            study(tmp_path, "translation", files, recipe="seq2seq(gru, gru)", **keys)


def test_a_study_that_keeps_a_cpu_busy_for_months_needs_a_gpu(tmp_path):
    large = load_study("all-attention-words")
    plan = make_plan(large, Store(tmp_path), memory=None, locate=lambda dataset: f"get {dataset.name}")
    assert any(fact.endswith("get wikitext-103") for fact in notes_on(plan, "data"))
    page = " ".join(str(on_machine(plan, Machine(gpus=0.0))).split())
    assert "needs a GPU: " in page
    small = load_study("algorithmic-small")
    plan = make_plan(small, Store(tmp_path), memory=None)
    assert "needs a GPU" not in str(on_machine(plan, Machine(gpus=0.0)))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([f"x{n % 2} y" for n in range(60)], '"characters" or "words"'),
        (
            [chr(0x4E00 + n) * 3 for n in range(900)],
            "characters .* pieces",
        ),
        ([f"word{n} other{n * 7} third{n * 13}" for n in range(300)], None),
    ],
)
def test_a_bpe_vocabulary_that_cannot_be_is_a_fault_of_the_data(tmp_path, lines, expected):
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    keys = {"recipe": "conv(k=3)", "tokens": "bpe", "pieces": 500, "context": 8}
    if expected is None:
        assert study(tmp_path, "language_model", {"path": "a.txt"}, **keys).trials
    else:
        with pytest.raises(StudyError, match=expected):
            study(tmp_path, "language_model", {"path": "a.txt"}, **keys)


def test_a_bpe_vocabulary_of_pairs_is_checked_for_each_side(tmp_path, golden):
    numbers = range(200)
    (tmp_path / "a.en").write_text("".join(f"word{n} other{n * 7} third{n * 13}\n" for n in numbers))
    (tmp_path / "a.fr").write_text("".join(f"x{n % 2} y\n" for n in numbers))
    files, keys = {"source": "a.en", "target": "a.fr"}, {"recipe": "seq2seq(gru, gru)", "tokens": "bpe"}
    with golden.raises(StudyError):
        study(tmp_path, "translation", files, pieces=400, **keys)
    assert study(tmp_path, "translation", files, pieces=400, joint_vocabulary=True, **keys).trials


def test_pieces_follow_a_text_that_is_too_small_for_the_usual_number(tmp_path):
    words = "".join(f"word{n} other{n * 7} third{n * 13}\n" for n in range(300))
    (tmp_path / "a.txt").write_text(words)
    keys = {"recipe": "conv(k=3)", "tokens": "bpe", "context": 8}
    found = study(tmp_path, "language_model", {"path": "a.txt"}, **keys)
    pieces = found.trials[0].settings.task.pieces
    assert 300 <= pieces < 3000
    assert f"pieces = {pieces:,} by default" in " ".join(notes_on(make_plan(found, Store(tmp_path)), "data"))
    record = {"text": found.document.text, "own_corpus": json.loads(json.dumps(found.own_corpus.to_dict()))}
    assert load_recorded_study(record).trials == found.trials
    keep_files(found.own_corpus.files, tmp_path / "data" / "own")
    assert len(open_corpus(found.trials[0].settings.task, tmp_path / "data").train.tokens) > 1000


def test_facts_about_a_large_file_are_kept_until_it_changes(tmp_path, monkeypatch):
    path = tmp_path / "large.txt"
    path.write_text("".join(f"line {n} of a text that is large\n" for n in range(40_000)))
    keys = {"recipe": "conv(k=3)", "context": 8}
    first = study(tmp_path, "language_model", {"path": "large.txt"}, **keys)
    with monkeypatch.context() as patched:
        patched.setattr(texts, "summarise_text", None)
        again = study(tmp_path, "language_model", {"path": "large.txt"}, **keys)
    assert (again.trials, again.own_corpus) == (first.trials, first.own_corpus)
    path.write_text(path.read_text().replace("line", "lane"))
    changed = study(tmp_path, "language_model", {"path": "large.txt"}, **keys)
    assert changed.trials[0].id != first.trials[0].id
