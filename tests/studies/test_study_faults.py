"""All faults of a study are reported together, each with its line."""

import pickle
import re
from codecs import BOM_UTF8
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activemem import StudyError, load_study
from activemem.grammar import UNBOUNDED, Reach, Role, Spec
from activemem.grammar.vocabulary.spec import SPECS

from ..registry_entries import replace_entry
from ..study_texts import study_text
from .fault_messages import TEXT, message


def test_all_faults_of_a_study_with_every_kind_of_fault_are_reported_together(tmp_path, golden):
    path = tmp_path / "wrong.toml"
    path.write_text(EVERYTHING_WRONG, encoding="utf-8")
    with golden.raises(StudyError):
        load_study(path, ["train.epochz=3", "model.position=up", "train.epochs=2"])


def test_a_key_by_the_name_of_another_program_leads_to_ours(golden):
    of_model = [f"model.{key}=2" for key in ("dim", "hidden", "layers")]
    lengths = [f"train.{key}=2" for key in ("batch", "steps", "token", "seed")]
    rules = [f"train.{key}=2" for key in ("grad_clip", "learning_rate", "momentum", "dropout")]
    golden(message(TEXT, *of_model, *lengths, *rules, "study.seeds=2"))


@pytest.mark.parametrize(
    "change",
    [
        'search={ trials = 9, metric = "loss", limits = { parameters = "< 1e6" } }',
        "study.checkpoint_every=5",
        "train.gpu=1",
        "figure=3",
    ],
)
def test_an_unknown_key_leads_to_the_place_of_its_value(change, golden):
    golden(message(TEXT, change))


def test_the_keys_of_a_misspelt_optimizer_are_checked_as_those_of_the_nearest():
    told = message(TEXT, 'train.optimizer={ name = "adamm", lrr = 1 }')
    assert told.startswith("study: 2 faults\n")
    assert "[train] optimizer.name: unknown optimizer 'adamm'; nearest: adam\n" in told
    assert told.endswith("[train] optimizer: unknown key 'lrr' of adam; nearest: lr")


@pytest.mark.parametrize("key", ["labels", "order", "max_seeds"])
def test_a_wrong_key_of_the_study_hides_no_paper(key):
    with pytest.raises(StudyError) as caught:
        load_study("algorithmic-small-rates", [f"study.{key}=-1"])
    (fault,) = caught.value.faults
    assert fault.message.startswith(f"[study] {key}: ")


def test_a_paper_without_published_numbers_is_refused_with_the_known_papers():
    told = message(TEXT, "study.paper=mine")
    assert "[study] paper: unknown paper 'mine'; known: active-memory-transformer, " in told


def test_only_the_first_of_very_many_faults_are_shown():
    text = study_text(
        model={"recipe": "{mixer} >> conv(k={k})"},
        task={"name": "reverse"},
        factors={"mixer": ["sa"], "k": list(range(1000, 1101))},
    )
    told = message(text).splitlines()
    assert told[0] == "study: 76 faults"
    assert sum("at most 1024, got" in line for line in told) == 10
    assert told[-1] == "  and 66 more in line 21"


@pytest.mark.parametrize("value", ["2024-01-01", "12:30:00", "2024-01-01T12:30:00+00:00"])
def test_a_date_or_time_is_shown_as_in_the_file(value):
    told = message(TEXT, f"factors.seed=[{value}]")
    assert told.endswith(f"got {value}")
    assert message(TEXT, f"train.epochs={value}").endswith(f"got {value}")


def test_a_table_without_a_valid_value_is_checked_further(golden):
    tables = [
        {"name": "t", "rows": "mixer", "value": "loss"},
        {"name": "t", "rows": "mixer", "columns": "mixer", "value": []},
    ]
    told = message(study_text(task={"name": "reverse"}, factors={"mixer": ["sa", "gru"]}, table=tables))
    assert told.startswith("study: 3 faults\n")
    golden(told)


@pytest.mark.parametrize("override", ["factors.mixer=3", "factors.mixer=[]", "model.recipe=3"])
def test_what_a_faulty_part_could_use_is_not_reported_as_unused(override):
    table = {"name": "t", "rows": "mixer", "value": "loss", "over": "k", "select": {"mixer": "sa"}}
    text = study_text(
        task={"name": "reverse"},
        recipes={"own": "conv(k={k})"},
        factors={"mixer": ["{own}", "sa"], "k": [3, 5]},
        table=[table],
    )
    assert load_study(text).cells
    assert message(text, override).startswith("study: 1 fault\n")


@pytest.mark.parametrize(
    ("override", "right"),
    [
        ("lr=0.1", "train.optimizer.lr=0.1"),
        ("learning_rate = 3e-4", "train.optimizer.lr = 3e-4"),
        ("optimizer.lr=0.1", "train.optimizer.lr=0.1"),
        ('study.optimizer={ name = "sgd", lr = 1 }', 'train.optimizer={ name = "sgd", lr = 1 }'),
        ("train.learning_rate=0.1", "train.optimizer.lr=0.1"),
        ("train.wd=0.1", "train.optimizer.weight_decay=0.1"),
        ("task.epochs=5", "train.epochs=5"),
        ("study.dropout=0.1", "model.dropout=0.1"),
        ("width=32", "model.d_model=32"),
        ("vocab=3", "task.vocab=3"),
        ('mixer=["sa"]', 'factors.mixer=["sa"]'),
    ],
)
def test_an_override_of_a_misplaced_key_is_told_as_it_can_be_typed(override, right):
    assert message(TEXT, override).endswith(f"; write {right}")
    load_study(TEXT, [right])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("lr = 0.1", "'lr'; [train] has this key: train.optimizer.lr"),
        ("epoch = 3", "'epoch'; nearest: train.epochs"),
        ("heads = 2", "'heads'; write the heads in the recipe, as in sa(heads=4)"),
        ("vocab = 3", "'vocab'; [task] has this key: task.vocab"),
    ],
)
def test_a_key_above_all_tables_leads_to_its_table(line, told):
    assert message(f"{line}\n{TEXT}").endswith(f"unknown key {told}")


def test_a_synonym_of_a_missing_key_is_one_fault():
    text = TEXT.replace("lr = 1e-3", "learning_rate = 1e-3")
    told = message(text)
    assert told.startswith("study: 1 fault\n")
    assert told.endswith("'learning_rate' of adam; nearest: lr")


def test_seeds_for_the_factor_seed_are_one_fault():
    table = {"name": "t", "rows": "mixer", "value": "max_length"}
    text = study_text(factors={"mixer": ["sa"], "task": ["sort"], "seeds": [0, 1]}, table=[table])
    told = message(text)
    assert told.startswith("study: 1 fault\n")
    assert told.endswith("nearest: seed")
    labelled = text.replace("[study]\n", '[study]\ndesign = "zip"\nlabels = "seeds"\n')
    assert "'seeds'" not in message(labelled)


def test_a_pruner_is_a_scheduler_here():
    search = {"trials": 2, "metric": "loss", "pruner": "asha"}
    text = study_text({"k": "integer(2, 4)"}, model={"recipe": "conv(k={k})"}, search=search)
    assert "'pruner'; nearest: scheduler" in message(text)


@pytest.mark.parametrize(
    "value",
    ["[" * 60_000, "[" * 400 + "]" * 400, "{a=" * 400, "1\nb" + ".b" * 60_000 + " = 1"],
    ids=["open", "closed", "tables", "dots"],
)
def test_values_that_are_nested_without_an_end_are_reported_at_their_place(value):
    told = message(f"{TEXT}\n[extra]\na = {value}")
    *_, shown, carets, last = told.splitlines()
    assert ("^" in carets, "TOML: " in last, "16 levels" in last) == (True, True, True), shown
    assert "16 levels" in message(TEXT, f"train.x={value}".replace("\n", " "))


@pytest.mark.parametrize(
    "line",
    [
        "a = lstm",
        "a = 2 * (sa >> ff(8))  # two",
        "a = [conv(k=3, dilation=2), 1]",
        "a = {b = gru}",
        "a = True",
        "a = off",
        "a = None",
        "a = .5",
        "a = 10 000",
        "a = (2, 4)",
        "a = \u201csa\u201d",
        'a = "sa',
        "a = 'sa",
        'a = ["sa" "gru"]',
        "a = {b = 1,\nc = 2}",
        'a = "loss[m="sa"] > 1"',
        "a =",
        "[study]",
        "a = 0,002",
        "a = {b = 1,000, c = 2}",
        "a = [0,002, 0,1]",
        "a = [\n0,05e-3, 1,\n]",
        "a = 1,2,3",
        "a = [0, 1\n\n[b]\nc = 2",
        "a = [\n  0,\nb = 1",
        "a = [[0, 1]\n[2, 3]]",
        "a = [0, x y]",
        "a = [True, false]",
        "a = 'sa\u2019",
        "a = 1\nb = 2\na = 3",
        "a = [\n  1,\n]\na = [\n  2,\n]",
        "[a]\nb = 1\n[[a]]",
        "a = 1\na.b = 2",
        "[a.b]\nc = 1\n[d]\ne.f = 2\n[d.e]",
    ],
)
def test_a_value_that_is_not_toml_is_reported_with_what_was_meant(line, golden):
    told = message(f"{TEXT}\n{line}\n")
    golden(told)


EVERYTHING_WRONG = """\
[study]
name = "wrong one"
title = 3

[model]
recipe = "4 * ({mixr} >> ff(filter={width}) >> {tail})"
d_model = "{width}"
norm = "pree"
dropout = 1.5

[task]
name = "{task}"

[train]
optimizer = { name = "adam", lrr = 1e-3, betas = [0.9] }
batch_size = 32
epocs = 100
steps_per_epoch = "{many}"
curriculum = { start = 5, grow_at = 1.0 }

[factors]
mixer = ["cgru(k=20)", "sa + highway_cnv(k=0)", "sa", "sa"]
tail = ["ff(3)", "conv(k={kk})", "ff(", "ff(4) + sa(head=3)"]
width = [128, "big", 64.5]
task = ["reverse", "sortt"]
seed = [0, -1]
many = []
idle = [1, 2]

[[table]]
name = "t"
rows = "mixr"
columns = "task"
value = "max_lenght"

[trian]
x = 1
"""


def cases():
    """Return changes of the text above and the expected messages, from wrong.txt."""
    text = (Path(__file__).parent / "wrong.txt").read_text(encoding="utf-8")
    for block in text.removesuffix("\n").removeprefix("=== ").split("\n=== "):
        name, *changes, told = re.split(r"\n--- (?:old|new|told)\n", block)
        yield pytest.param(list(zip(changes[::2], changes[1::2], strict=True)), told, id=name)


@pytest.mark.parametrize(("changes", "told"), list(cases()))
def test_a_fault_is_reported_under_its_line(changes, told):
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    assert message(text) == told


def test_quoted_text_stays_on_its_line_and_keeps_its_direction():
    plain, hostile = (message(f'{TEXT}\n["{name}"]\n') for name in ("x", r"x\ny\t\u202e\u009b"))
    assert plain.count("\n") == hostile.count("\n")
    assert all(line.isprintable() for line in hostile.split("\n"))
    assert "x y \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" in hostile


def test_a_fault_of_an_override_is_shown_under_the_override(golden):
    wrong = ("train.epochz=3", "train.epochs=few", "train.epochs.many=3", "nonsense", "a b=3", "#a=3")
    golden(message(TEXT, *wrong))
    golden(message(TEXT, "train.epochz=3", "train.epochs=few", "factors.mixer=[3]"))


@pytest.fixture
def last_token(monkeypatch):
    """Register a pool, `last_token`, and `stretch`, which changes the length, during a test."""
    for name, role in (("last_token", Role.POOL), ("stretch", Role.TRANSDUCER)):
        spec = Spec(
            name=name,
            role=role,
            summary="",
            equation="",
            source="",
            reach=lambda _settings, _context: Reach(left=UNBOUNDED, right=0),
            owner="the tests",
        )
        replace_entry(SPECS, spec.name, spec)


@pytest.mark.usefixtures("last_token")
def test_a_recipe_that_the_task_cannot_take_is_reported(golden):
    level = TEXT.replace("2 * ({mixer} >> ff(8))", "ff(8) >> {mixer}").replace('"conv(k=3)"', '"last_token"')
    golden(message(level))
    longer = message(TEXT.replace('"conv(k=3)"', '"stretch"'))
    golden(longer.splitlines()[-1])
    alone = TEXT.replace("2 * ({mixer} >> ff(8))", "{mixer}").replace('"conv(k=3)"', '"stretch"')
    golden(message(alone).splitlines()[-1])
    middle = TEXT.replace('"conv(k=3)"', '"last_token"')
    golden(message(middle).splitlines()[-1])
    behind = TEXT.replace("2 * ({mixer} >> ff(8))", "sa >> {mixer} >> ff(8)")
    golden(message(behind.replace('"conv(k=3)"', '"last_token"')).splitlines()[-1])


def test_faults_that_do_not_depend_on_a_wrong_key_are_reported_together_with_it(golden):
    text = study_text(
        model={"recipe": "sa(span=8) >> ff(8)", "bias_init": "unifrom"},
        task={"name": "language_model", "corpus": "paradise-lost", "batching": "sentences"},
        train={"epochs": None, "sampling": 0.1},
    )
    told = [line.strip() for line in message(text).splitlines()]
    assert told[0] == "study: 5 faults"
    golden([line for line in told if line.startswith("[") or "^  [" in line])


def test_a_key_that_may_be_misspelt_is_not_reported_as_missing():
    assert message(TEXT.replace("curriculum =", "curiculum =")) == (
        "study: 1 fault\n"
        "\n"
        "  17 | curiculum = { start = 5 }\n"
        "       ^^^^^^^^^  [train] unknown key 'curiculum'; nearest: curriculum"
    )


def test_an_override_takes_the_place_of_what_was_wrong():
    study = load_study(TEXT.replace("epochs = 2", 'epochs = "many"'), ["train.epochs=2"])
    assert study.trials[0].settings.train.epochs == 2


def test_bytes_that_are_no_text_are_reported(tmp_path, golden):
    path = tmp_path / "latin.toml"
    path.write_bytes(TEXT.replace("tiny study", "tiny étude").encode("latin-1"))
    with golden.raises(StudyError):
        load_study(path)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    path = tmp_path / "marked.toml"
    path.write_bytes(BOM_UTF8 + TEXT.encode())
    assert load_study(path).document.text == load_study(TEXT).document.text


def test_a_fault_that_only_cells_have_names_their_levels(golden):
    text = TEXT.replace("conv(k=3)", "conv(k={k})").replace("[factors]", "[factors]\nk = [3, 0]")
    golden(message(text))


def test_the_error_of_a_study_survives_pickling():
    with pytest.raises(StudyError) as caught:
        load_study(TEXT.replace("epochs", "epocs"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.faults) == (str(caught.value), caught.value.faults)


VALUES = st.recursive(
    st.sampled_from(
        """0 3 -1 1e-3 inf true 2024-01-01 "" "{mixer}" "{k}" "sa" "conv(" "integer(3,5)" "{" "x{mixer}y"
        "{mixer}>>ff(8)" "choice(sa,conv(k=3))" "reverse" "zip" "one_at_a_time" "parameters" "{part}"
        "conv(k={k})" "{part}+{k}" """.split()  # noqa: SIM905 -- easier to read than a list
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
        | inner.map(lambda value: f"{{ name = {value}, k = {value} }}")
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(
    """study study.name study.design study.match study.baseline study.baseline.mixer study.baseline.k
    study.tolerance study.limits study.limits.reach recipes recipes.k recipes.mixer recipes.part
    cells model model.recipe model.d_model task task.name train train.epochs train.optimizer
    train.optimizer.betas train.curriculum.start factors factors.mixer factors.k factors.seed search
    search.space search.space.k search.trials table other 'a_b' """.split()  # noqa: SIM905 -- as above
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), st.integers(0, 20))
def test_a_study_is_loaded_or_all_its_faults_are_reported_and_nothing_else_happens(changes, without):
    lines = TEXT.splitlines(keepends=True)
    text = "".join(lines[:without] + lines[without + 1 :])
    try:
        study = load_study(text, [f"{key}={value}" for key, value in changes])
    except StudyError as error:
        assert error.faults
        assert str(error).startswith(f"study: {len(error.faults)} fault")
    else:
        assert study.search or study.trials


@pytest.mark.parametrize(
    "line",
    [
        "lr = 1e-3",
        "grow_at = 1.0",
        "epoch = 3",
    ],
)
def test_an_unknown_key_names_the_inner_table_that_has_it(line, golden):
    golden(message(TEXT.replace("[train]\n", f"[train]\n{line}\n", 1)))


def test_a_fault_of_a_part_to_remove_is_shown_in_the_recipe_of_the_file():
    with pytest.raises(StudyError) as caught:
        load_study(TEXT, ["study.ablate=parts", "model.recipe='sa >> ff({size})'"])
    found = [str(fault.message) for fault in caught.value.faults]
    assert any(each.startswith("[model] recipe: ") and "{size}" in each for each in found)


@pytest.mark.parametrize(
    "two",
    [
        {"search": {"scheduler": "ashaa"}, "study": {"baseline": {"k": 99}}},
        {"search": {"scheduler": "ashaa"}, "study": {"baseline": {"kk": 3}}},
        {"search": {"metric": "losss"}, "study": {"baseline": {"k": 99}}},
        {"search": {"trials": -1, "across": ["nope"]}},
        {"train": {"epochs": 0}, "study": {"baseline": {"k": 99}}},
    ],
    ids=["scheduler, value", "scheduler, name", "metric, value", "trials, across", "epochs, value"],
)
def test_faults_of_a_search_do_not_hide_each_other(two):
    text = study_text(
        model={"recipe": "conv(k={k})"},
        task={"name": "reverse"},
        factors={"mixer": None, "task": None},
        space={"k": "integer(2, 9)"},
        search={"trials": 4, "metric": "loss"} | two.pop("search", {}),
        **two,
    )
    with pytest.raises(StudyError) as caught:
        load_study(text)
    assert len(caught.value.faults) == 2


def test_a_fault_of_the_study_table_does_not_hide_one_of_its_baseline_or_of_decode():
    study = {"titel": "x", "design": "one_at_a_time", "baseline": {"mixer": "saa"}}
    with pytest.raises(StudyError) as caught:
        load_study(study_text(study=study, factors={"mixer": ["sa", "conv(k=3)"]}) + "[decode]\n")
    told = " ".join(fault.message for fault in caught.value.faults)
    assert "unknown key 'titel'" in told
    assert "unknown level 'saa'" in told
    assert "keep_weights" in told
