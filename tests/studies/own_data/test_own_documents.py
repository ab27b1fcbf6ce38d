"""Documents in Parquet files: facts, splits and ids, and faults with their place."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from activemem import StudyError, load_study
from activemem.studies import Trial
from activemem.studies.catalog.datasets import HeldOutFractions
from activemem.studies.study import load_recorded_study

from ...study_texts import study_text

DOCUMENTS = [f"Document {number}\n\nhas two lines, naïve {number % 7}.\n" for number in range(200)]


def write(path, texts, column="text"):
    """Write texts to a Parquet file of several row groups."""
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({column: texts, "url": [""] * len(texts)}), path, row_group_size=30)


def study(folder, corpus, **task):
    text = study_text(
        model={"recipe": "conv(k=3)"},
        task={"name": "language_model", "corpus": corpus, "context": 8, **task},
        train={"curriculum": None, "batch_size": 2},
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return load_study(folder / "study.toml")


def told(folder, corpus, **task):
    with pytest.raises(StudyError) as caught:
        study(folder, corpus, **task)
    return [
        re.sub(r"^\[task\] [\w.]+: ", "", fault.message.replace(f"{folder}/", ""))
        for fault in caught.value.faults
    ]


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "shards" / "shard_00000.parquet", DOCUMENTS[:120])
    write(tmp_path / "shards" / "shard_00001.parquet", [*DOCUMENTS[120:], " \n", None])
    return tmp_path


def test_shares_are_drawn_by_a_hash_of_the_document(folder):
    found = study(folder, {"documents": "shards", "dev": 0.2, "test": 0.1})
    (trial,) = found.trials
    facts, shares = trial.settings.task.corpus, HeldOutFractions(dev=0.2, test=0.1)
    drawn = [shares.split_of(text) for text in DOCUMENTS]
    expected = {split: drawn.count(split) for split in ("train", "dev", "test")}
    assert facts.rows.model_dump() == expected == found.own_corpus.summary.rows
    (source,) = facts.sources
    trained = [text for text, split in zip(DOCUMENTS, drawn, strict=True) if split == "train"]
    assert (source.documents, source.bytes) == (len(trained), len("".join(trained).encode()))
    assert trial.settings.task.interface.model.vocab == 257


def test_an_id_is_that_of_the_content_and_of_the_weights(folder):
    (first,) = study(folder, {"documents": "shards"}).trials
    assert Trial.from_json(first.to_json()).id == first.id
    (folder / "shards").rename(folder / "moved")
    (moved,) = study(folder, {"documents": "moved"}).trials
    assert moved.id == first.id
    write(folder / "b.parquet", [f"other {text}" for text in DOCUMENTS])
    ids = set()
    for weight in (1.0, 2.0):
        mixture = [{"path": "moved", "weight": weight}, {"path": "b.parquet"}]
        ids |= {trial.id for trial in study(folder, {"documents": mixture}, batching="packed").trials}
    assert len(ids | {first.id}) == 3


def test_a_recorded_study_is_read_without_its_files(folder):
    found = study(folder, {"documents": "shards"})
    record = {"text": found.document.text, "overrides": [], "own_corpus": found.own_corpus.to_dict()}
    for path in (folder / "shards").iterdir():
        path.unlink()
    assert load_recorded_study(record).trials == found.trials


def test_splits_may_have_files_of_their_own(folder):
    write(folder / "dev.parquet", ["a dev document", "another"])
    write(folder / "test.parquet", ["a test document"])
    corpus = {"documents": "shards", "dev": "dev.parquet", "test": "test.parquet"}
    (trial,) = study(folder, corpus).trials
    assert trial.settings.task.corpus.rows.model_dump() == {"train": 200, "dev": 2, "test": 1}


def test_faults_name_the_file_and_the_column(folder, golden):
    write(folder / "body.parquet", DOCUMENTS, column="body")
    pq.write_table(pa.table({"text": [1, 2]}), folder / "numbers.parquet")
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    (folder / "empty").mkdir()
    for path in ("body.parquet", "numbers.parquet", "empty", "none.txt", "none.parquet"):
        golden(told(folder, {"documents": path}))
    (message,) = told(folder, {"documents": "broken.parquet"})
    assert message.startswith("broken.parquet: expected Parquet, got ")


@pytest.mark.parametrize(
    "task",
    [
        {"tokens": "words"},
        {"tokens": "bpe"},
        {"batching": "sentences"},
        {"separate_documents": True},
        {"separate_documents": True, "batching": "lines"},
        {"context": 100_000},
        {"context": 100_000, "batching": "packed"},
    ],
)
def test_invalid_documents_are_rejected(folder, task, golden):
    golden(told(folder, {"documents": "shards"}, **task))


def test_a_mixture_is_packed_and_each_weight_is_above_zero(folder, golden):
    mixture = {"documents": [{"path": "shards"}, {"path": "shards", "weight": 2}]}
    golden(told(folder, mixture))
    (message,) = told(folder, {"documents": [{"path": "shards", "weight": 0.0}]}, batching="packed")
    assert "above 0" in message


def test_a_text_of_lines_has_no_documents_to_separate(folder, golden):
    (folder / "my.txt").write_text("a line of words\n" * 200, encoding="utf-8")
    (message,) = told(folder, {"path": "my.txt"}, batching="packed", separate_documents=True)
    golden(message)


def test_a_shard_may_be_larger_than_the_limit_for_files_read_as_a_whole(folder, monkeypatch):
    monkeypatch.setenv("ACTIVEMEM_MAX_DATA_GB", "0.00002")  # less than the shard, more than a batch of it
    many = [f"{number:,} {'x' * 60}" for number in range(5000)]
    write(folder / "large.parquet", many)
    assert (folder / "large.parquet").stat().st_size > 20_000
    assert sum(study(folder, {"documents": "large.parquet"}).own_corpus.summary.rows.values()) == 5000


def test_documents_that_unpack_to_more_than_the_limit_are_refused_in_one_clear_sentence(folder, monkeypatch):
    pq.write_table(pa.table({"text": ["x" * 1000] * 30_000}), folder / "bomb.parquet")
    monkeypatch.setenv("ACTIVEMEM_MAX_DATA_GB", "0.002")
    (message,) = told(folder, {"documents": "bomb.parquet"})
    assert re.match(r"bomb.parquet: .* at most [\d.]+ kB of values .*ACTIVEMEM_MAX_DATA_GB", message)
    (folder / "large.txt").write_text("a line\n" * 500_000)
    (message,) = told(folder, {"path": "large.txt"})
    assert re.match(r"large.txt: .* 0\.002 GB", message)
