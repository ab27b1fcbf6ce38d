"""Documents of Parquet files: tokenised once, document ends kept, and read in packed pieces or mixtures."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from activemem import load_model, load_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.data.text.batches import iter_packed_batches, iter_packed_eval
from activemem.engine.data.text.corpus import open_corpus
from activemem.storage import Store
from activemem.studies.catalog.datasets import HeldOutFractions

from ....study_texts import study_text
from ...tokenizer_factories import GPT2_WORDS, byte_level_json, language_task, open_text, ranks_of

DOCUMENTS = [f"Document {n}\n\n  has lines, naïve {n % 7} and 日本.\n" for n in range(150)]
JSON = byte_level_json("".join(DOCUMENTS), 300)
TOKENS = {
    "characters": {},
    "byte_bpe": {"tokens": "byte_bpe", "pieces": 300},
    "tokenizer.json": {"tokens": "pretrained", "tokenizer": "tokenizer.json"},
    "tiktoken": {"tokens": "pretrained", "tokenizer": {"path": "my.tiktoken", "pattern": GPT2_WORDS}},
}


def write(path, texts):
    pq.write_table(pa.table({"text": texts}), path, row_group_size=40)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shards").mkdir()
    write(tmp_path / "shards" / "0.parquet", DOCUMENTS[:90])
    write(tmp_path / "shards" / "1.parquet", DOCUMENTS[90:])
    (tmp_path / "tokenizer.json").write_bytes(JSON)
    (tmp_path / "my.tiktoken").write_bytes(ranks_of(JSON))
    return tmp_path


def documents_of(split, symbols):
    bounds = itertools.pairwise(split.lines.tolist())
    return [symbols.decode(split.tokens[start : end - 1].tolist()) for start, end in bounds]


@pytest.mark.parametrize("kind", TOKENS)
def test_each_document_is_kept_as_it_is_and_ends_in_a_mark(folder, kind):
    text = open_text(folder, {"documents": "shards"}, **TOKENS[kind])
    shares = HeldOutFractions(dev=0.1, test=0.1)
    for name in ("train", "dev", "test"):
        split, expected = getattr(text, name), [each for each in DOCUMENTS if shares.split_of(each) == name]
        assert documents_of(split, text.vocabulary) == expected
        ends = [0, *(split.lines[1:] - 1).tolist()]
        assert torch.nonzero(split.tokens == text.vocabulary.end).flatten().tolist() == ends
        assert split.line_bytes.tolist() == [len(each.encode()) for each in expected]
        assert split.line_words.tolist() == [len(each.split()) + 1 for each in expected]


def test_tokens_are_written_once_and_not_again_for_other_weights(folder):
    write(folder / "b.parquet", [f"b {text}" for text in DOCUMENTS])
    for weight in (1.0, 3.0):
        mixture = {"documents": [{"path": "shards", "weight": weight}, {"path": "b.parquet"}]}
        found = open_text(folder, mixture, batching="packed")
        assert [each for each, _ in found.sources] == [weight, 1.0]
    assert sum(path.is_dir() for path in (folder / "data" / "encoded").iterdir()) == 1
    assert documents_of(found.sources[1][1], found.vocabulary)[0].startswith("b Document")
    assert len(found.dev.line_words) > len(open_text(folder, {"documents": "shards"}).dev.line_words)


def test_a_file_that_has_changed_is_refused(folder, golden):
    task = language_task(folder, {"documents": "shards"})
    kept = next((folder / "data" / "own").iterdir())
    kept.write_bytes(kept.read_bytes() + b" ")
    with golden.raises(DataError):
        open_corpus(task, folder / "data")
    kept.unlink()
    with golden.raises(DataError):
        open_corpus(task, folder / "data")


def test_a_mixture_trains_and_its_model_reads_documents_without_the_files(folder, notes):
    write(folder / "b.parquet", [f"b {text}" for text in DOCUMENTS])
    corpus = {"documents": [{"path": "shards", "weight": 0.75}, {"path": "b.parquet", "weight": 0.25}]}
    text = study_text(
        study={"name": "mixture", "title": "A mixture", "keep_weights": True},
        model={"recipe": "sa(heads=2) >> ff(16)"},
        task={
            "name": "language_model",
            "corpus": corpus,
            "tokens": "pretrained",
            "tokenizer": "tokenizer.json",
            "batching": "packed",
            "context": 8,
        },
        train={"curriculum": None, "batch_size": 4, "epochs": 1, "steps_per_epoch": 3},
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    study, store = load_study(folder / "study.toml"), Store(folder / "results")
    assert run_study(study, store, Machine(data=folder / "data"), notes, local=True).done == 1
    for path in study.own_corpus.files.values():
        path.unlink()
    (file,) = (folder / "results").rglob("*.safetensors")
    model = load_model(file)
    assert {"dev_bits_per_byte", "test_bits_per_byte", "test_perplexity"} <= model.file.metrics.keys()
    score = model.score("Two\n\nlines")
    assert (score.bytes, score.ends.tokens, score.ends.bytes) == (10, 1, 0)
    assert isinstance("".join(model.generate("Two\nlines", max_symbols=4)), str)


def pieces(batches, count):
    return torch.cat([batch.inputs for batch in itertools.islice(batches, count)])


def test_each_pass_has_every_piece_once_in_an_order_of_its_own():
    tokens = torch.arange(101)
    rows = pieces(iter_packed_batches([(1.0, tokens)], batch_size=5, context=10, seed=3), 4)
    first, second = rows[:10], rows[10:]
    for one in (first, second):
        assert sorted(one[:, 0].tolist()) == list(range(0, 100, 10))
    assert first[:, 0].tolist() != second[:, 0].tolist()
    batch = next(iter_packed_batches([(1.0, tokens)], batch_size=5, context=10, seed=3))
    assert torch.equal(batch.targets, batch.inputs + 1)


@pytest.mark.parametrize("position", [0, 1, 7, 40])
def test_a_mixture_resumes_from_any_batch(position):
    sources = [
        (0.7, torch.arange(1_000)),
        (0.2, torch.arange(1_000, 1_100)),
        (0.1, torch.arange(2_000, 2_500)),
    ]
    asked = {"batch_size": 6, "context": 9, "seed": 1}
    whole = pieces(iter_packed_batches(sources, **asked), position + 5)
    rest = pieces(iter_packed_batches(sources, **asked, position=position), 5)
    assert torch.equal(whole[6 * position :], rest)


def test_every_run_of_rows_has_the_shares_of_the_weights():
    sources = [
        (5.0, torch.arange(10_000)),
        (3.0, torch.arange(10_000, 10_400)),
        (2.0, torch.arange(20_000, 29_000)),
    ]
    rows = pieces(iter_packed_batches(sources, batch_size=10, context=9, seed=1), 200)[:, 0].contiguous()
    source = torch.bucketize(rows, torch.tensor([10_000, 20_000], dtype=rows.dtype), right=True)
    for start in range(0, 2_000, 250):
        shares = torch.bincount(source[start : start + 250], minlength=3) / 250
        assert torch.allclose(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.013)
    small = rows[source == 1].sort().values
    counts = torch.unique(small, return_counts=True)[1]
    assert len(counts) == (400 - 1) // 9
    assert counts.max() - counts.min() <= 1  # a pass takes all pieces before the next begins


@pytest.mark.parametrize("length", [2, 10, 11, 12, 101])
def test_a_split_is_scored_once_in_pieces(length):
    tokens = torch.arange(length) + 1
    batches = list(iter_packed_eval(tokens, batch_size=3, context=10))
    scored = torch.cat([batch.targets[batch.scored] for batch in batches])
    assert scored.tolist() == tokens[1:].tolist()
    for batch in batches:
        assert torch.equal(batch.targets[batch.scored], batch.inputs[batch.scored] + 1)


def test_a_source_shorter_than_a_piece_is_refused(golden):
    with golden.raises(DataError):
        next(iter_packed_batches([(1.0, torch.arange(5))], batch_size=2, context=10, seed=0))
