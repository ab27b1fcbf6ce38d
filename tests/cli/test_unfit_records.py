"""Foreign records in a shared store: commands always end with a documented exit status."""

import json
import logging
import random
import shutil
from pathlib import Path

import polars as pl
import pytest

from activemem import load_study
from activemem.storage import Store
from activemem.storage.checksums import encode
from activemem.storage.trial_files import NOTE_FILE, STARTS_FILE, write_note

from .store_factories import make_partial_store

COMMANDS = (
    ("study", "status", "tiny"),
    ("study", "list"),
    ("study", "show", "tiny"),
    ("study", "plan", "tiny.toml"),
    ("table", "render", "tiny"),
    ("claim", "check", "tiny"),
    ("curve", "render", "tiny"),
    ("study", "missing", "tiny"),
    ("model", "list", "tiny"),
    ("report", "build", "tiny", "--out", "report.html"),
    ("store", "check"),
)
UNFIT_VALUES = (
    None,
    7,
    "secret.toml",
    "[study]\nname = 3\n",
    [],
    {},
    ["x"],
    [None],
    "\ud800",
    -1,
    1e300,
    True,
)


@pytest.fixture
def shared(tiny):
    """Return a store with outcomes, a record and a running trial, saved in the folder `whole`."""
    Path("secret.toml").write_text("[study]\npassword = hunter2\n", encoding="utf-8")
    text = Path(tiny).read_text(encoding="utf-8")
    text += '[[claim]]\nname = "low"\nsource = "s"\nholds = "loss[mixer=conv(k=3), task=not] < 9"\n'
    curve = 'name = "c"\nkind = "line"\nvalue = "loss"\nx = "epoch"\nseries = "mixer"\n'
    text += f'[[curve]]\n{curve}select = {{ task = "not" }}\n'
    Path(tiny).write_text(text, encoding="utf-8")
    store = make_partial_store(tiny)
    store.records.save(
        "tiny", {"text": text, "overrides": ["train.epochs=2"], "path": "secret.toml", "claims": {}}
    )
    (left,) = [trial for trial in load_study(tiny).trials if trial.id not in store.latest_attempts()]
    folder = store.files.checkpoint_dir(left.id)
    folder.mkdir(parents=True)
    (folder / STARTS_FILE).write_text(f"{left.to_json()}\nrun 0\n", encoding="utf-8")
    write_note(folder, 1, {"loss": 0.5})
    store.leases("one").claim(left.id, 0).beat()
    shutil.copytree("results", "whole")
    return store


FEW = (("study", "status", "tiny"), ("claim", "check", "tiny"))
"""Two fast commands for every test run; all of `COMMANDS` take minutes."""


@pytest.fixture(
    params=[pytest.param(FEW, id="few"), pytest.param(COMMANDS, id="all", marks=pytest.mark.slow)]
)
def commands(request):
    """Return the commands to run with each record."""
    return request.param


@pytest.fixture
def every_command_ends_in_order(run, caplog, commands):
    caplog.set_level(logging.CRITICAL)

    def check(what):
        damaged = Path("results")
        for command in commands:
            shutil.rmtree("given", ignore_errors=True)
            shutil.copytree(damaged, "given")
            ended = run(*command, "--results", "given")
            assert ended.exit_code in {0, 1, 2, 3}, (what, command)
            assert all(each == "\n" or each.isprintable() for each in ended.stdout + ended.stderr), command
            assert "hunter2" not in ended.stdout + ended.stderr, (what, command)
            if ended.exit_code == 2:
                assert ended.stderr.strip(), (what, command)
        shutil.rmtree(damaged)
        shutil.copytree("whole", damaged)

    return check


def unsealed(page):
    return {name: value for name, value in page.items() if name != "checksum"}


def records(store):
    """Return the JSON files of a store, with the JSON of their first line or whole text."""
    (folder,) = (store.root / "checkpoints").iterdir()
    (lease,) = (store.root / "leases").iterdir()
    return store.root / "studies/tiny.json", folder / STARTS_FILE, folder / NOTE_FILE, lease


@pytest.mark.slow
def test_a_value_of_another_kind_in_any_record_is_no_traceback(shared, every_command_ends_in_order):
    draw = random.Random(1)
    for path in records(shared):
        head, _, rest = (path.read_text(), "", "") if path.suffix else path.read_text().partition("\n")
        page = unsealed(json.loads(head))
        inner = page.get("record", page)
        for key in inner:
            value = draw.choice(UNFIT_VALUES)
            changed = {**inner, key: value}
            whole = {**page, "record": changed} if "record" in page else changed
            path.write_text(f"{json.dumps(whole)}\n{rest}")
            every_command_ends_in_order((path.name, key, value))


def test_a_text_of_a_record_that_is_a_path_is_never_opened(shared, every_command_ends_in_order, commands):
    path = shared.root / "studies/tiny.json"
    page = unsealed(json.loads(path.read_text()))
    corpus = '[study]\nname = "tiny"\n[task]\nname = "language_model"\ncorpus = { path = "secret.toml" }\n'
    texts = ("secret.toml", corpus, str(Path("secret.toml").absolute()), "quickstart")
    for text in texts[: 2 if commands is FEW else None]:
        path.write_text(json.dumps({**page, "record": {**page["record"], "text": text}}))
        every_command_ends_in_order(text)


@pytest.mark.parametrize("key", ["path", "other_paths"])
def test_a_path_of_a_record_that_no_system_has_is_no_file(run, shared, key):
    page = unsealed(json.loads((path := shared.root / "studies/tiny.json").read_text()))
    for name in ("x" * 100_000, "a\0b", "\x1b[31m"):
        changed = {**page["record"], key: name if key == "path" else [name]}
        path.write_text(json.dumps({**page, "record": changed}))
        for command in (FEW[0], ("study", "show", "tiny"), ("study", "plan", "tiny.toml")):
            ended = run(*command, "--results", "results")
            assert (ended.exit_code, len(ended.stderr) < 1000) == (0, True), (command, ended.stderr[:300])


@pytest.mark.slow
def test_a_flipped_byte_in_any_record_is_no_traceback(shared, every_command_ends_in_order):
    draw = random.Random(2)
    for path in records(shared):
        for _ in range(2):
            data = bytearray(path.read_bytes())
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            path.write_bytes(data)
            every_command_ends_in_order((path.name, bytes(data)))


TEXTS = {
    "factors": ('{"mixer": [1], "seed": {}}', None, "{}", '{"mixer": null}', "[]", "x", "null"),
    "settings": ('{"model": 1}', None, "{}", "null", "x", '{"task": {"name": "not"}}'),
    "study": ("../x", "", "a b"),
    "trial": ("../../secret", "", "x" * 300),
    "recipe": (None, "", "sa(", "\x1b[2J"),
    "task": (None, "", "nothing"),
    "status": (None, "odd"),
}


@pytest.mark.parametrize("column", TEXTS)
def test_a_row_whose_json_or_names_do_not_fit_is_no_traceback(
    shared, every_command_ends_in_order, commands, column
):
    path = min((shared.root / "trials/tiny").iterdir())
    for text in TEXTS[column][: 2 if commands is FEW else None]:
        changed = pl.lit(text, dtype=pl.String).alias(column)
        path.write_bytes(encode(pl.read_parquet(path).with_columns(changed)))
        every_command_ends_in_order((column, text))


@pytest.mark.heavy
def test_a_run_continues_where_its_records_are_damaged(run, shared, caplog):
    caplog.set_level(logging.CRITICAL)
    study, begun, note, lease = records(shared)
    lease.unlink()
    for path in (study, begun, note):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    assert run("study", "run", "tiny.toml", "--local").exit_code in {0, 1}
    assert run("study", "status", "tiny").exit_code == 0


def test_a_damaged_record_of_a_study_says_how_to_continue(run, shared):
    (shared.root / "studies/tiny.json").write_text(
        '{"schema": 1, "remembered": "", "record": {"text": null}}'
    )
    ended = run("study", "status", "tiny", "--results", "results")
    assert ended.exit_code == 2
    assert "quarantine/studies/tiny.json" in ended.stderr
    assert "activemem study run" in ended.stderr
    assert Store("results").records.load("tiny") is None
