"""`docs/how-to`, `docs/reference`: every study on a page loads, and tables have every key of a file.

The tables are compared with the models in `test_documents`.
"""

import re
from pathlib import Path
from typing import get_args

import pytest

from activemem import StudyResults, load_plugin, load_study, run_study
from activemem.storage import Store
from activemem.studies.catalog.optimisers import OwnOptimizerSettings, OwnScheduleSettings
from activemem.studies.catalog.tasks import require_task, task_names
from activemem.studies.presentation.reader import KINDS
from activemem.studies.schema import settings
from activemem.studies.schema.tables import all_tables
from activemem.studies.text.strict_model import StrictModel

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("how-to/*.md"))}
KEYS = "".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("reference/keys-*.md")))
CURVES = ("effects", "profile", "scaling", "points")
WHOLE = re.search(r"^```toml\n(.*?)^```$", HOW_TO["factors"], re.DOTALL | re.MULTILINE)[1]
PARTS = [
    (name, part)
    for name, page in HOW_TO.items()
    for part in re.findall(r"^```toml part\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
]


def tables(text):
    """Return the text of each table by its header, with arrays of tables joined."""
    found = {}
    for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        found[part.partition("\n")[0]] = found.get(part.partition("\n")[0], "") + part
    return found


def completed(part):
    """Complete a part of a study by missing tables from the first study of `factors.md`."""
    rest = {
        header: text for header, text in tables(WHOLE).items() if header not in ("[factors]", "[[table]]")
    }
    text = "".join({**rest, **tables(part)}.values())
    return text if re.search(r"^task = \[", part, re.MULTILINE) else text.replace('"{task}"', '"reverse"')


def study(page, heading):
    """Return the first study of a page below a heading."""
    below = HOW_TO[page][HOW_TO[page].index(f"# {heading}") :]
    return load_study(completed(re.search(r"^```toml part\n(.*?)^```$", below, re.DOTALL | re.MULTILINE)[1]))


def test_the_whole_study_loads():
    assert len(load_study(WHOLE).trials) == 2 * 2 * 3


@pytest.mark.parametrize("part", [part for _, part in PARTS], ids=[name for name, _ in PARTS])
def test_every_part_of_a_page_completes_a_study(part):
    found = load_study(completed(part))
    assert found.search or found.trials


@pytest.mark.parametrize("part", [part for _, part in PARTS], ids=[name for name, _ in PARTS])
def test_every_part_says_which_tables_a_reader_adds_to_run_it(part):
    missing = [name for name in ("[study]", "[model]", "[task]", "[train]") if name not in tables(part)]
    said, _, _ = part.partition("\n")
    assert re.findall(r"\[\w+\]", said if said.startswith("# part of a study: add ") else "") == missing


def test_statements_of_the_pages_about_their_studies_are_true():
    assert [trial.settings.model.recipe for trial in study("factors", "Fragments of recipes").trials][-1] == (
        "4 * (sa + conv(k=9) >> ff(256))"
    )
    assert len(study("designs", "One change at a time").trials) == 1 + 2 + 1 + 2
    equal = study("sizes", "Equal parameters")
    assert {found.costs[0].target for found in equal.size_matches.values()} == {
        equal.size_matches[trial.id].costs[0].amount
        for trial in equal.trials
        if trial.levels["mixer"] == "sa"
    }
    assert len({found.costs[0].target for found in equal.size_matches.values()}) == 2
    assert list(study("search", "How do I search").dimensions) == ["filter", "choice", "conv.k"]


def test_muon_is_compared_with_adamw_on_the_same_models(tmp_path):
    text = re.search(r"^```toml part\n(.*?)^```$", HOW_TO["train"], re.S | re.M)[1]
    small = ["factors.lr=[3e-3]", "factors.seed=[0]", "train.epochs=1", "train.steps_per_epoch=5"]
    found = load_study(text, [*small, "train.schedule.cooldown=2", "train.schedule.warmup=2"])
    assert run_study(found, Store(tmp_path), local=True).done == 2
    results = StudyResults(found, Store(tmp_path))
    shown = results.tables()[0].render("markdown")
    assert re.findall(r"^\| (adamw|muon) \|", shown, re.M) == ["adamw", "muon"]


def test_the_trainings_of_a_page_end_early_and_measure_gradients():
    ending, measuring = study("train", "Stop early"), study("train", "Measure gradients")
    for trial in ending.trials:
        stopping = trial.settings.train.early_stopping
        assert (stopping.metric, stopping.patience, stopping.min_change) == ("dev_loss", 5, 0.001)
    assert {trial.settings.train.measure for trial in measuring.trials} == {("gradient_norm",)}


def keys(model, before=""):
    """Return every key of a model, with dotted names for inline tables."""
    for key, field in model.model_fields.items():
        yield f"{before}{key}"
        for kind in tables_in(field.annotation):
            yield from keys(kind, f"{before}{key}.")


def tables_in(kind):
    """Return the table models in a type, including those in lists."""
    if isinstance(kind, type) and issubclass(kind, StrictModel):
        yield kind
    for inner in get_args(kind):
        yield from tables_in(inner)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        *((name, *all_tables()[name].models()[:1]) for name in ("model", "search", "ladder")),
        ("train", settings.TrainSettings),
        ("optimizer", OwnOptimizerSettings),
        ("schedule", OwnScheduleSettings),
        *((f"table_{name}", None) for name in ("effects", "aggregate", "scaling", "points")),
        *((f"curve_{name}", None) for name in CURVES),
    ],
)
def test_every_key_is_in_the_reference_and_says_what_it_means(name, model):
    if model is None:
        for plugin in ("effects", "aggregate"):  # kinds that come with a plug-in
            load_plugin(plugin)
        role, kind = name.split("_")
        model = KINDS[role][kind]
    rows = re.search(rf"generated: keys_{name} -->\n(.*?)<!-- end", KEYS, re.DOTALL)[1]
    meanings = dict(re.findall(r"^\| `(.*?)` \|.*\| ([^|]+) \|$", rows, re.MULTILINE))
    assert list(meanings) == list(keys(model))
    assert not {"", "None"} & set(meanings.values())


def test_every_key_of_study_is_in_the_reference():
    rows = re.search(r"generated: keys_study -->\n(.*?)<!-- end", KEYS, re.DOTALL)[1]
    told = re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE)
    assert told == [key for model in all_tables()["study"].models() for key in keys(model)]
    assert {"ablate", "labels", "match", "tolerance"} <= set(told)


def test_every_task_is_in_the_reference_with_its_own_keys():
    text = re.search(r"generated: keys_task -->\n(.*?)<!-- end", KEYS, re.DOTALL)[1]
    told = {}
    for part in re.split(r"^(?=Of )|^(?=No other)", text.strip(), flags=re.MULTILINE)[1:]:
        heading, _, table = part.partition("\n")
        for name in re.findall(r"`(\w+)`", heading):
            told[name] = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
    assert told == {name: list(require_task(name).keys) for name in task_names()}


def test_every_key_of_a_figure_of_cells_is_in_the_reference():
    rows = re.search(r"generated: keys_curve -->\n(.*?)<!-- end", KEYS, re.DOTALL)[1]
    cells = [kind for kind in KINDS["curve"].values() if "panels" in kind.model_fields]
    assert {*re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE)} == {
        key for kind in cells for key in keys(kind)
    }


def test_every_key_of_a_table_is_in_the_reference():
    rows = re.search(r"generated: keys_table -->\n(.*?)<!-- end", KEYS, re.DOTALL)[1]
    assert re.findall(r"^\| `(.*?)` \|", rows, re.MULTILINE) == list(keys(KINDS["table"]["cells"]))
