"""Bits per byte: they do not depend on the tokens of a text, and do not exist for lossy tokens."""

import math
import random
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers
import torch

from activemem import load_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.objectives.text_scores import score_text
from activemem.grammar import configure, parse
from activemem.storage import Store
from activemem.studies.catalog.datasets import HeldOutFractions
from activemem.studies.catalog.tasks import LanguageModelSettings

from ...quick_cases import one_in
from ...study_texts import study_text
from ..tokenizer_factories import GPT2_WORDS, byte_level_json, language_task, open_text, ranks_of

CPU = torch.device("cpu")
RANDOM = random.Random(0)
WORDS = ("naïve", "größe", "of", "the", "sea", "2024", "日本", "and", "it", ",", ".", "flows", "flow")
LINES = [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 9))) for _ in range(400)]
TEXT = "\n".join(LINES) + "\n"

TOKENS = {
    "characters": {"tokens": "characters"},
    "words": {"tokens": "words", "pieces": 300},
    "sentencepiece": {"tokens": "bpe", "pieces": 300},
    "byte_bpe": {"tokens": "byte_bpe", "pieces": 300},
    "tokenizer.json": {"tokens": "pretrained", "tokenizer": "tokenizer.json"},
    "tiktoken": {"tokens": "pretrained", "tokenizer": {"path": "my.tiktoken", "pattern": GPT2_WORDS}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "my.txt").write_text(TEXT, encoding="utf-8")
    content = byte_level_json(TEXT)
    (folder / "tokenizer.json").write_bytes(content)
    (folder / "my.tiktoken").write_bytes(ranks_of(content))
    return folder


@cache
def byte_nats(before, byte):
    """Return the nats of a byte after others: an arbitrary distribution that sums to 1."""
    weights = random.Random(before).choices(range(1, 100), k=256)
    return -math.log(weights[byte] / sum(weights))


def nats_of(text, before=b"\n\n"):
    """Return the nats of each byte of a text after two bytes."""
    whole = before + text
    return [byte_nats(whole[place - 2 : place], whole[place]) for place in range(2, len(whole))]


class Bytes(torch.nn.Module):
    """A model of bytes, seen through tokens: a token has the nats of its bytes, by the chain rule."""

    recipe, config = parse("lstm"), configure(d_model=8, vocab=4)

    def __init__(self, vocabulary):
        super().__init__()
        self._vocabulary = vocabulary

    def spelt(self, tokens):
        """Return the bytes that each token adds to those before it in its line."""
        line, shown, found = [], b"", []
        for token in tokens:
            if token == self._vocabulary.end:
                found.append(b"\n")
                line, shown = [], b""
                continue
            line.append(token)
            now = self._bytes(line)
            found.append(now[len(shown) :])
            shown = now
        return found

    def _bytes(self, line):
        text = self._vocabulary.decode(line)
        if not text.endswith("\ufffd"):
            return text.encode()
        return self._bytes(line[:-1])  # the bytes of a character are those of its last token

    def _nats(self, tokens, before):
        spelt = self.spelt(tokens)
        nats = iter(nats_of(b"".join(spelt), before))
        return [sum(next(nats) for _ in each) for each in spelt]

    def nll_stream(self, inputs, targets, state):
        """Return the nats of the targets of one row; the state has all tokens so far."""
        (inputs,), (targets,) = inputs.tolist(), targets.tolist()
        past = state if isinstance(state, list) else inputs[:1]
        tokens = [*past, *targets]
        nats = self._nats(tokens, b"\n\n")[-len(targets) :]
        return torch.tensor([nats], dtype=torch.float64), tokens

    def nll(self, inputs, targets, lengths):
        """Return the nats of each line, 0 at padding."""
        rows = torch.zeros(targets.shape, dtype=torch.float64)
        for row, (tokens, length) in enumerate(zip(targets.tolist(), lengths.tolist(), strict=True)):
            rows[row, :length] = torch.tensor(self._nats(tokens[:length], b"\n\n"), dtype=torch.float64)
        return rows


def split_bytes(text, name):
    """Return the original bytes of a split, found by its number of lines."""
    counts = [len(getattr(text, split).line_words) for split in ("train", "dev", "test")]
    start = sum(counts[: ("train", "dev", "test").index(name)])
    count = len(getattr(text, name).line_words)
    return "".join(f"{line}\n" for line in LINES[start : start + count]).encode()


@pytest.mark.parametrize("kind", TOKENS)
def test_lines_have_the_bits_of_their_bytes_with_any_tokens(folder, kind):
    text = open_text(folder, {"path": "my.txt"}, **TOKENS[kind], batching="lines")
    original = split_bytes(text, "test")
    expected = sum(sum(nats_of(line + b"\n")) for line in original.splitlines()) / math.log(2)
    task = LanguageModelSettings.model_construct(batching="lines", longest=300)
    given = {"batch_size": 7, "end": text.vocabulary.end, "device": CPU}
    score = score_text(Bytes(text.vocabulary), text.test, task, **given)
    assert score.bytes == len(original)
    assert score.bits_per_byte == pytest.approx(expected / len(original), rel=1e-12)


@pytest.mark.parametrize("kind", TOKENS)
def test_a_stream_has_the_bits_of_all_bytes_after_its_first_token(folder, kind):
    text = open_text(folder, {"path": "my.txt"}, **TOKENS[kind])
    original = split_bytes(text, "dev")
    given = text.dev.first_bytes  # none where a mark stands before the text
    first = Bytes(text.vocabulary).spelt(text.dev.tokens[:1].tolist())[0]
    assert given == len(first) * (text.dev.lines[0] == 0)
    expected = sum(nats_of(original, b"\n\n")[given:]) / math.log(2)
    task = LanguageModelSettings.model_construct(batching="stream", context=9)
    rows = {"batch_size": 3, "end": text.vocabulary.end, "device": CPU}
    score = score_text(Bytes(text.vocabulary), text.dev, task, **rows)
    assert score.bytes == len(original) - given
    assert score.bits_per_byte == pytest.approx(expected / (len(original) - given), rel=1e-9)


RARE = "".join(f"w{number} w{number + 1}\n" for number in range(0, 600, 2))
LOSSY = {
    "unknown words": (RARE, {"tokens": "words", "pieces": 300}),
    "spaces": (TEXT.replace(" and", "  and"), {"tokens": "words", "pieces": 300}),
    "capital letters": (TEXT.replace("sea", "Sea"), {"tokens": "bpe", "pieces": 300}),
    "a normaliser": (
        TEXT.replace("sea", "Sea"),
        {"tokens": "pretrained", "tokenizer": "lower.json"},
    ),
}


@pytest.mark.parametrize("what", LOSSY)
def test_tokens_that_lose_text_have_no_bits_per_byte(tmp_path, what):
    text, task = LOSSY[what]
    (tmp_path / "my.txt").write_text(text, encoding="utf-8")
    lower = tokenizers.normalizers.Lowercase()
    (tmp_path / "lower.json").write_bytes(byte_level_json(TEXT, normalizer=lower))
    assert open_text(tmp_path, {"path": "my.txt"}, **task).test.line_bytes is None


@pytest.mark.parametrize("watched", ["stop", "search"])
def test_lossy_tokens_cannot_be_followed_by_bits_per_byte(tmp_path, watched, golden):
    (tmp_path / "my.txt").write_text(RARE, encoding="utf-8")
    searched = watched == "search"
    stopping = None if searched else {"metric": "dev_bits_per_byte", "patience": 2}
    corpus = {"path": "my.txt"}
    text = study_text(
        model={"recipe": "conv(k={k})" if searched else "conv(k=3)"},
        task={"name": "language_model", "corpus": corpus, "tokens": "words", "pieces": 300, "context": 8},
        train={"curriculum": None, "batch_size": 2, "early_stopping": stopping},
        search={"metric": "dev_bits_per_byte", "trials": 2} if searched else {},
        space={"k": "choice(2, 3)"} if searched else {},
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study, store = load_study(tmp_path / "study.toml"), Store(tmp_path / "results")
    with golden.raises(DataError):
        run_study(study, store, Machine(data=tmp_path / "data"), local=True)
    assert store.trials().is_empty()


def test_spaces_around_all_lines_are_a_layout_that_words_determine(tmp_path):
    laid_out = "".join(f" {line} \n" if line else " \n" for line in ["", *LINES])
    (tmp_path / "my.txt").write_text(laid_out, encoding="utf-8")
    text = open_text(tmp_path, {"path": "my.txt"}, tokens="words", pieces=300)
    splits = (text.train, text.dev, text.test)
    assert sum(int(split.line_bytes.sum()) for split in splits) == len(laid_out.encode())


DOCUMENTS = [f"# Title {n}\n\nIt flows,  and {n * n}\tit ends.\n" * (1 + n % 3) for n in range(300)]
OF_DOCUMENTS = [kind for kind in TOKENS if kind not in ("words", "sentencepiece")]


def nats_by_last_byte(text, last):
    """Return the nats of a text's bytes, each predicted from the previous byte."""
    pairs = zip(last + text, text, strict=False)
    return sum(byte_nats(bytes([before]), byte) for before, byte in pairs)


class BytesOfDocuments(torch.nn.Module):
    """A model that predicts each byte of a document from the previous one; marks have their own nats."""

    recipe, config = parse("lstm"), configure(d_model=8, vocab=4)

    def __init__(self, vocabulary):
        super().__init__()
        self._spell = lambda token: vocabulary.decode([int(token)]).encode()

    def nll(self, inputs, targets, lengths=None):
        """Return the nats of each target, 0 at padding."""
        rows = torch.zeros(targets.shape, dtype=torch.float64)
        lengths = [targets.shape[1]] * len(targets) if lengths is None else lengths.tolist()
        for row, length in enumerate(lengths):
            before = inputs[row, 0]
            for place, target in enumerate(targets[row, :length]):
                last = b"\n" if before == 0 else self._spell(before)[-1:]
                text = b"" if target == 0 else self._spell(target)
                rows[row, place] = nats_by_last_byte(text, last) if text else 1.5
                before = target
        return rows

    def nll_at(self, inputs, targets, places, lengths):
        """Return the nats of targets at flat indices."""
        wanted = torch.zeros_like(inputs).flatten().scatter(0, places, targets).view_as(inputs)
        return self.nll(inputs, wanted, lengths).flatten()[places]

    def nll_stream(self, inputs, targets, state):
        """Return the nats of the next piece; its first input replaces the state."""
        return self.nll(inputs, targets), state


@pytest.mark.parametrize("batching", ["stream", "packed", "separate", "lines"])
@pytest.mark.parametrize("kind", one_in(2, OF_DOCUMENTS))
def test_documents_have_the_bits_of_their_bytes_with_any_tokens_and_batches(tmp_path, kind, batching):
    pq.write_table(pa.table({"text": DOCUMENTS}), tmp_path / "documents.parquet")
    content = byte_level_json("".join(DOCUMENTS))
    (tmp_path / "tokenizer.json").write_bytes(content)
    (tmp_path / "my.tiktoken").write_bytes(ranks_of(content))
    corpus = {"documents": "documents.parquet", "dev": 0.1}
    separate, batching = batching == "separate", "packed" if batching == "separate" else batching
    text = open_text(tmp_path, corpus, **TOKENS[kind], batching=batching, separate_documents=separate)
    shares = HeldOutFractions(dev=0.1, test=0.1)
    scored = [each.encode() for each in DOCUMENTS if shares.split_of(each) == "dev"]
    expected = sum(nats_by_last_byte(each, b"\n") for each in scored) / math.log(2)
    model = BytesOfDocuments(text.vocabulary)
    given = {"batching": batching, "separate_documents": separate, "context": 9, "longest": 300}
    task = LanguageModelSettings.model_construct(**given)
    score = score_text(model, text.dev, task, end=text.vocabulary.end, batch_size=3, device=CPU)
    size = sum(map(len, scored))
    assert (score.bytes, score.ends.tokens) == (size, len(scored))
    assert score.bits_per_byte == pytest.approx(expected / size, rel=1e-12)
    assert score.loss * score.tokens == pytest.approx(expected * math.log(2) + 1.5 * len(scored), rel=1e-12)


def test_a_vocabulary_has_one_number_more_than_its_file_for_the_mark(folder):
    sizes = {
        kind: language_task(folder, {"path": "my.txt"}, **TOKENS[kind]).interface.model.vocab
        for kind in ("byte_bpe", "tokenizer.json", "tiktoken")
    }
    assert sizes == {"byte_bpe": 300, "tokenizer.json": 301, "tiktoken": 300}
