"""Fuzzing with hundreds of inputs, ten thousands in `make fuzz`: only our own errors are allowed.

Every input is drawn from a seed, so that failures can be repeated. `bench/fuzz.py` does the same with
recipes.
"""

import io
import json
import logging
import pickle
import random
import re
import tarfile
import time
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import torch

from activemem import ActivememError, Corpus, FileSlice, SourceFile, load_study
from activemem.cli import load_settings
from activemem.engine import DataError, ModelFileError
from activemem.engine.core.models import read_model_file
from activemem.engine.corpora.files import read_source
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.grammar import parse
from activemem.reporting import query
from activemem.storage import Store
from activemem.storage.checksums import sealing

from .storage.factories import make_trial_row
from .studies.claims.factories import STUDY_TEXT
from .study_texts import study_text

STUDIES = Path(__file__).parents[1] / "studies"
SHIPPED = ("quickstart", "search-mixers", "quickstart-text", "algorithmic-small-rates")
HOLDS = [
    claim["holds"]
    for path in sorted(STUDIES.glob("*.toml"))
    for claim in tomllib.loads(path.read_text(encoding="utf-8")).get("claim", ())
]
PIECES = [
    *("\x1b[2J", "\x07", "\u202e", "\x00", "\x9b", "\ufeff", "é", "日", "\U0001f600", "\t", "\n", "\r", "\\"),
    *(
        "[",
        "]",
        "[[",
        "{",
        "}",
        "(",
        ")",
        "=",
        ",",
        ".",
        "#",
        '"',
        "'",
        '"""',
        "[" * 300,
        "(" * 300,
        "a." * 300,
    ),
    *("0", "-1", "1e400", "nan", "inf", "-inf", "9" * 30, "0x10", "true", "1979-05-27", "1.5"),
    *("__import__('os').system('true')", "{mixer}", "{task}", "{seed}", "{__class__}", "../../etc/passwd"),
    *(
        "[study]",
        "[factors]",
        "[search]",
        "[[table]]",
        "seed = []",
        "for m in mixer",
        "all(",
        "max(",
        "UNION",
    ),
    *("SELECT", "* FROM", "trials", "NULL", "CAST(1 AS INT)", "read_csv('/etc/passwd')", "--", "/*", ";"),
]
VALUES = [
    *("{}", "[]", "[[[]]]", "{ a = 1 }", "[1, 'a', true]", "nan", "-1", "0", "1e400", "9" * 30, "true", "''"),
    *(
        "1979-05-27",
        '["sa", "sa"]',
        "[0, 0]",
        '"{mixer} + {missing}"',
        '"4 * (sa >> "',
        '"choice(sa, ff(8))"',
    ),
]
"""Values for any key of a study file, in addition to `PIECES` as texts."""

CLAIMS = [
    "max_length[mixer=sa, task=reverse] > max_length[mixer=conv(k=3), task=reverse]",
    "all(max_length[mixer=m, task=t] < 37 for m in mixer for t in task except [not])",
    "max(accuracy[mixer=m, task=not] for m in [sa, conv(k=20)]) - accuracy[mixer=sa, task=not] < 0.1",
]
"""Valid claims of their study; `HOLDS` are those of included studies."""

_KEY = re.compile(r"^[\w.-]+(?= = )", re.MULTILINE)
_VALUE = re.compile(r"(?<= = )[^\n]*$", re.MULTILINE)
_log = logging.getLogger(__name__)


def examples(some, many):
    """Return a decorator for tests with a number of inputs, and a larger one in slow runs."""
    sizes = [pytest.param(some, id="some"), pytest.param(many, id="many", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("count", sizes)


def mutated(draw, text):
    """Return the text with pieces removed, inserted, doubled or moved."""
    for _ in range(draw.randint(1, 5)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice((0, 0, 1, 2, 8, 30)))
        put = draw.choice((draw.choice(PIECES), "", text[start:end] * 2, text[end : end + 20]))
        text = text[:start] + put + text[end:]
    return text


def misvalued(draw, text):
    """Return a study's text with replaced keys and values, as valid TOML."""
    for _ in range(draw.randint(1, 3)):
        pattern, options = draw.choice([(_VALUE, VALUES), (_VALUE, PIECES), (_VALUE, PIECES), (_KEY, PIECES)])
        put = draw.choice(options)
        if options is PIECES:
            put = quoted(draw.choice((put, f"sa{put}", put * 3)))
        found = draw.choice(list(pattern.finditer(text)))
        text = text[: found.start()] + put + text[found.end() :]
    return text


def quoted(text):
    """Return a text in quotes, as in TOML and JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def try_all(inputs, read, *, carets=True):
    """Read every input; each must be read or raise a printable error of ours."""
    wrong, outcomes, begun = [], Counter(), time.monotonic()
    for each in inputs:
        try:
            read(each)
            outcomes["read"] += 1
        except ActivememError as error:
            outcomes["errors"] += 1
            told = str(error)
            if not told.strip() or (carets and "^" not in told):
                wrong.append(f"no message, or no caret, for {each!r:.2000}: {told:.200}")
            if not all(line.isprintable() for line in told.split("\n")):
                wrong.append(f"{told!r:.500} of {each!r:.2000}")
        except BaseException as error:  # noqa: BLE001 -- whatever else comes is what is looked for
            wrong.append(f"{type(error).__name__}: {error!s:.200} from {each!r:.2000}")
    _log.info("%s in %.0f s", dict(outcomes), time.monotonic() - begun)
    assert wrong[:20] == []


@examples(30, 10_000)
def test_a_study_file_is_read_or_has_faults(count):
    draw = random.Random(1)
    texts = [(STUDIES / f"{name}.toml").read_text(encoding="utf-8") for name in SHIPPED]
    inputs = (
        draw.choice((mutated, misvalued, misvalued))(draw, draw.choice(texts)) + "\n" for _ in range(count)
    )
    try_all(inputs, load_study)


@examples(30, 6_000)
def test_an_override_is_taken_or_has_a_fault(count):
    draw = random.Random(2)
    text = study_text(task={"name": "reverse"}, factors={"mixer": ["sa", "conv(k=3)"]})
    overrides = (
        "train.epochs=3",
        "factors.seed=[0, 1]",
        "train.optimizer={name='sgd', lr=1}",
        "model.recipe=sa",
    )
    inputs = (mutated(draw, draw.choice(overrides)) for _ in range(count))
    try_all(inputs, lambda override: load_study(text, [override]), carets=False)


@examples(30, 18_000)
def test_a_claim_is_read_or_has_faults(count):
    draw = random.Random(3)
    inputs = (mutated(draw, draw.choice(draw.choice((HOLDS, CLAIMS)))) for _ in range(count))
    claim = '\n[[claim]]\nname = "one"\nholds = '
    try_all(inputs, lambda holds: load_study(STUDY_TEXT + claim + quoted(holds) + "\n"))


@examples(50, 10_000)
def test_settings_are_read_or_have_faults(count, tmp_path):
    draw = random.Random(4)
    text = 'results = "results"\ndata = "data"\ncpus = 2\ngpus = 0.5\ntime_limit_s = 60\nformat = "rich"\n'

    def read(changed):
        (tmp_path / "activemem.toml").write_bytes(changed.encode("utf-8", "surrogatepass"))
        load_settings(folder=tmp_path, environment={})

    inputs = (draw.choice((mutated, misvalued))(draw, text) for _ in range(count))
    try_all(inputs, read, carets=False)


@examples(30, 6_000)
def test_sql_is_answered_or_has_a_fault(count, tmp_path):
    draw, store = random.Random(5), Store(tmp_path)
    store.write(make_trial_row(1), [])
    statements = (
        "SELECT trial, status, count(*) AS n FROM trials GROUP BY trial, status ORDER BY n",
        "SELECT t.trial, m.value FROM metrics m JOIN trials t USING (trial) WHERE m.epoch = 2",
        "WITH a AS (SELECT seed FROM trials) SELECT seed + 1, seed || 'x' FROM a WHERE seed IN (0, 1)",
    )
    inputs = (mutated(draw, draw.choice(statements)) for _ in range(count))
    try_all(inputs, lambda sql: query(store, sql), carets=False)


@examples(30, 20_000)
def test_a_recipe_is_read_or_has_faults(count):
    draw = random.Random(7)
    recipes = ("4 * ({mixer} + highway_conv(k=20) >> ff(512))", "tied(2 * cgru(k=integer(3, 40))) >> sa")
    try_all((mutated(draw, draw.choice(recipes)) for _ in range(count)), parse)


@examples(20, 4_000)
def test_a_file_of_rows_is_read_or_counts_as_missing(count, tmp_path, caplog):
    draw = random.Random(6)
    caplog.set_level(logging.CRITICAL)
    store = Store(tmp_path / "whole")
    store.write(make_trial_row(1), [])
    (path,) = store.root.glob("trials/*/*.parquet")
    whole, name = path.read_bytes(), path.relative_to(store.root)

    def read(data):
        target = tmp_path / "hurt" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        assert Store(tmp_path / "hurt").trials().height <= 1

    try_all((damaged(draw, whole) for _ in range(count)), read, carets=False)


def damaged(draw, data):
    """Return bytes that are flipped, truncated, extended or replaced."""
    hurt, start = bytearray(data), draw.randrange(len(data))
    match draw.randrange(4):
        case 0:
            hurt[start] ^= 1 << draw.randrange(8)
        case 1:
            del hurt[start:]
        case 2:
            hurt[start:start] = draw.randbytes(draw.randint(1, 64))
        case _:
            hurt[:] = draw.randbytes(draw.randint(0, 300))
    return bytes(hurt)


class Evil:
    """An object that would create a file if unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_of_a_checkpoint_or_of_a_model_is_run(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    proof, checkpoint = tmp_path / "proof", Checkpoint(Store(tmp_path), "0" * 16)
    checkpoint.folder.mkdir(parents=True)
    saved = io.BytesIO()
    torch.save({"state": Evil(proof), "metrics": [], "totals": {}}, saved)
    for data in (saved.getvalue(), pickle.dumps(Evil(proof), protocol=2)):
        for sealed in (True, False):
            path = checkpoint.folder / "state.pt"
            if sealed:
                with sealing(path) as file:
                    file.write(data)
            else:
                path.write_bytes(data)
            with pytest.raises(ModelFileError):
                read_model_file(path)
            assert checkpoint.load() is None
    assert not proof.exists()


def corpus(name):
    source = SourceFile(names=("text",), size=20, digest="md5:0", archive=name)
    splits = {split: FileSlice(source=source) for split in ("train", "dev", "test")}
    return Corpus(
        name="verses", title="", folder="", splits=splits, alphabet=b"", licence="", source=""
    ), source


def test_an_archive_writes_nothing_anywhere_and_a_bomb_is_not_unpacked(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    with zipfile.ZipFile(inside / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../evil", b"x")
        archive.writestr("/tmp/evil", b"x")
        with archive.open("text", "w") as bomb:
            for _ in range(64):
                bomb.write(bytes(1 << 20))
    with tarfile.open(inside / "b.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("text")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("../evil"))
    for name in ("a.zip", "b.tar.gz"):
        asked, source = corpus(name)
        with pytest.raises(DataError):
            read_source(asked, source, inside)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.zip", "b.tar.gz", "inside"]


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "tied(" * 5_000, "sa" + ">> sa" * 50_000, "__import__('os')"]
)
def test_a_recipe_without_an_end_is_an_error(text):
    with pytest.raises(ActivememError):
        parse(text)
