"""Wrong arguments of public functions: each error names the expected and the given value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import activemem
from activemem import (
    ActivememError,
    Budget,
    Space,
    Store,
    analyse,
    build,
    compare_recipes,
    keep_stale_trials,
    load_model,
    load_plugin,
    load_study,
    nearest_recipes,
    open_study,
    parse,
    probe_study,
    run_study,
    show_recipe,
    tune_study,
)
from activemem.engine import Machine
from activemem.grammar import configure
from activemem.reporting import query
from activemem.studies import load_studies

from .studies.claims.factories import STUDY_TEXT

Call = Callable[[Any], object]

TEXT = f"""{STUDY_TEXT}
[[table]]
name = "lengths"
rows = "mixer"
columns = "task"
value = "max_length"

[[curve]]
name = "course"
kind = "line"
value = "loss"
x = "epoch"
series = "mixer"
select.task = "not"
"""
SIZES = {"d_model": 8, "vocab": 5}

WRONG: list[tuple[Call, str]] = [
    (
        lambda its: run_study("first", its.store),
        "study: expected a Study, as load_study returns it",
    ),
    (lambda its: run_study(its.store, its.study), "store: expected a Store or its folder, got a Study"),
    (
        lambda its: run_study(its.study, its.store, {"cpus": 2}),
        "machine: expected a Machine, got {",
    ),
    (lambda its: run_study(its.study, its.store, listener=print), "listener: expected a Listener, got a"),
    (lambda its: run_study(its.study, its.store, max_trials="3"), "max_trials: expected a whole number of"),
    (lambda its: run_study(its.study, its.store, max_failures=0), "max_failures: expected a whole number of"),
    (lambda its: run_study(its.study, its.store, trial_ids="0a1b"), "trial_ids: expected a list of texts"),
    (
        lambda its: run_study(its.study, its.store, local="ray"),
        "local: expected True, False or None",
    ),
    (lambda its: next(probe_study(its.store, its.study)), "study: expected a Study, as load_study"),
    (lambda its: next(probe_study(its.study, its.store, sequences=0)), "sequences: expected a whole number"),
    (lambda its: next(tune_study(its.study, 7)), "store: expected a Store or its folder, got 7"),
    (lambda its: query("SELECT 1", its.store), "sql: expected a statement, such as"),
    (lambda its: query(4, "SELECT 1"), "store: expected a Store or its folder, got 4"),
    (lambda its: nearest_recipes("sa", None), "store: expected a Store or its folder, got None"),
    (
        lambda its: nearest_recipes("sa", its.store, count=0),
        "count: expected a whole number of at least 1",
    ),
    (
        lambda its: nearest_recipes("sa", its.store, count=True),
        "count: expected a whole number of at least 1",
    ),
    (lambda its: nearest_recipes("sa", its.store, task=2), "task: expected a name, got 2"),
    (lambda its: load_study(["first.toml"]), "source: expected the name of a study, its file or its text"),
    (lambda its: load_study(TEXT, {"train.epochs": 2}), "got {'train.epochs': 2}"),
    (lambda its: load_study(TEXT, [2]), "overrides: expected a list of texts, such as"),
    (lambda its: open_study(its.store, its.study), "results: expected a Store or its folder, got a Study"),
    (lambda its: open_study("first", its.store, 3), "overrides: expected a list of texts"),
    (lambda its: Store(3), "store: expected a folder or an address, got 3"),
    (lambda its: parse(5), "expected a text or an expression, got 5"),
    (lambda its: Space(None), "expected a text or an expression, got None"),
    (lambda its: Space("sa", 100), "budget: expected a Budget, got 100"),
    (lambda its: its.results.table(0), "name: expected None or the name of a table: lengths, got 0"),
    (lambda its: its.results.curves(["course"]), "name: expected None or the name of a curve: course, got"),
    (lambda its: its.results.table().render(1), "form: expected the name of a format, got 1"),
    (lambda its: its.results.curve().render("gif"), "form: expected svg, png, pdf, got 'gif'"),
    (lambda its: its.results.curve().render("svgz"), "got 'svgz'; nearest: svg"),
    (lambda its: its.results.plan(only={"task": "sort"}), "only: expected a list of texts"),
    (lambda its: build("sa >> ff(8)", d_model="32", vocab=10), "d_model: expected a whole number, got '32'"),
    (lambda its: build("sa >> ff(8)", **SIZES, cutoffs=3), "cutoffs: expected a list, got 3"),
    (lambda its: build("sa >> ff(8)", **SIZES, causal="yes"), "causal: expected true or false, got 'yes'"),
    (lambda its: build("sa >> ff(8)", 32), "config: expected a ModelConfig, got 32"),
    (lambda its: build("sa >> ff(8)", **SIZES, generator=1), "generator: expected a torch.Generator, got 1"),
    (
        lambda its: build("sa >> ff(8)", vocab=10),
        "recipe 'sa >> ff(8)' cannot be built\n  d_model is missing, for example d_model=64",
    ),
    (lambda its: configure(d_model=8, dropout="0.1"), "dropout: expected a number, got '0.1'"),
    (lambda its: analyse("sa", **SIZES, length=0), "length: expected a whole number of at least 1, got 0"),
    (lambda its: analyse("sa", **SIZES, length=4, past=-1), "past: expected a whole number of at least 0"),
    (
        lambda its: analyse("sa", **SIZES, length=4.0),
        "length: expected a whole number of at least 1, got 4.0",
    ),
    (
        lambda its: show_recipe("sa", **SIZES, length=-5),
        "length: expected a whole number of at least 1, got -5",
    ),
    (
        lambda its: show_recipe("sa", **SIZES, length=5, batch=0),
        "batch: expected a whole number of at least 1",
    ),
    (lambda its: show_recipe("sa", **SIZES, length=5).render("png"), "form: expected text or svg, got 'png'"),
    (lambda its: compare_recipes("sa", **SIZES, length=5), "recipes: expected a list of recipes, got 'sa'"),
    (lambda its: analyse("sa", **SIZES, length=-(10**400)), "length: expected a whole number of at least 1"),
    (lambda its: Budget(max_parameters="1e6", d_model=8, vocab=5), "max_parameters: expected a whole number"),
    (lambda its: Space("choice(sa, conv(k=3))").sample(7), "rng: expected a Random, got 7"),
    (lambda its: Space("choice(sa, conv(k=3))").sample_distinct("2", Random(0)), "count: expected a whole"),
    (lambda its: "sa" in Space("sa"), "recipe: expected a Recipe, as parse returns it, got 'sa'"),
    (lambda its: parse("{x} >> ff(8)").fill("relu"), "fillings: expected a value for each hole, got 'relu'"),
    (lambda its: its.results.best(3), "metric: expected the name of a metric, got 3"),
    (lambda its: its.results.next_seeds(seconds="60"), "seconds: expected a number of at least 0, got '60'"),
    (lambda its: load_model(None), "path: expected the path of a trained model, got None"),
    (lambda its: load_plugin(3), "path: expected the path of a plug-in, got 3"),
    (lambda its: keep_stale_trials(its.store, its.study), "study: expected a Study, as load_study"),
    (lambda its: load_studies(3), "store: expected a Store or its folder, got 3"),
    (lambda its: Machine(cpus=0), "cpus: expected a number above 0, got 0"),
    (lambda its: Machine(cpus="two"), "cpus: expected a number above 0, got 'two'"),
    (lambda its: Machine(cpus=float("nan")), "cpus: expected a number above 0, got nan"),
    (lambda its: Machine(gpus="one"), "gpus: expected auto or a number up to 1, got 'one'"),
    (lambda its: Machine(pack=2.5), "pack: expected auto, off or at least 1 trial, got 2.5"),
    (lambda its: Machine(time_limit_s=-1), "time_limit_s: expected a number above 0, got -1"),
]


@pytest.fixture
def its(tmp_path: Path) -> SimpleNamespace:
    study, store = load_study(TEXT), Store(tmp_path)
    return SimpleNamespace(study=study, store=store, results=open_study(study, store))


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_argument_is_named_with_what_was_expected(its: SimpleNamespace, call: Call, message: str):
    with pytest.raises(ActivememError) as raised:
        call(its)
    assert message in str(raised.value)


def test_all_wrong_arguments_are_named_at_once(its: SimpleNamespace):
    with pytest.raises(ActivememError) as raised:
        run_study(its.store, its.study, max_trials=-1)  # pyright: ignore[reportArgumentType] -- what is tested
    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == [
        "study",
        "store",
        "max_trials",
    ]


def test_a_folder_stands_for_its_store(its: SimpleNamespace):
    folder = its.store.place
    assert run_study(its.study, folder, local=True, max_trials=0).ran == 0
    assert query(Path(folder), "SELECT trial FROM trials").height == 0
    assert nearest_recipes("sa", folder) == []


def test_one_text_is_one_override(its: SimpleNamespace):
    asked = "train.epochs=3"
    assert (
        load_study(TEXT, asked).document.overrides == load_study(TEXT, [asked]).document.overrides == (asked,)
    )


def test_a_machine_takes_its_folder_as_a_text():
    assert Machine(data="corpora").data == Path("corpora")  # pyright: ignore[reportArgumentType] -- what is tested


def test_an_unknown_name_comes_with_the_nearest_one():
    with pytest.raises(AttributeError, match=r"has no name 'load_studdy'; nearest: load_study$"):
        _ = activemem.load_studdy  # pyright: ignore[reportAttributeAccessIssue] -- what is tested
    with pytest.raises(AttributeError, match=r"nearest: highway_conv$"):
        _ = activemem.highway_konv  # pyright: ignore[reportAttributeAccessIssue] -- what is tested


def test_a_space_shows_its_recipe_shortened():
    assert repr(Space("choice(sa, conv(k=3)) >> ff(8)")) == "Space(choice(sa, conv(k=3)) >> ff(8))"
    wide = Space(" >> ".join(["choice(sa, cgru(k=3))"] * 20), Budget(max_parameters=10, d_model=8, vocab=5))
    assert repr(wide).endswith("…, within a budget)")
    assert len(repr(wide)) < 100
