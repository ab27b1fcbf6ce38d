"""Wrong arguments of public functions: each error names the expected and the given value."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import activemem
from activemem import (
    ActivememError,
    Space,
    Store,
    load_study,
    open_study,
    run_study,
)
from activemem.engine import Machine, draw_test_batches
from activemem.grammar import configure
from activemem.reporting import query
from activemem.studies import load_studies

from .golden import GoldenTexts
from .studies.claims.factories import STUDY_TEXT

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


class Mean:
    """A metric that measures nothing."""

    def update(self, outputs: object, targets: object) -> None: ...
    def compute(self) -> float:
        return 0.0


NAMES = {name: getattr(activemem, name) for name in activemem.__all__} | {
    "TEXT": TEXT,
    "SIZES": SIZES,
    "Machine": Machine,
    "draw_test_batches": draw_test_batches,
    "Mean": Mean,
    "configure": configure,
    "load_studies": load_studies,
    "query": query,
}

WRONG = [
    'run_study("first", its.store)',
    "run_study(its.store, its.study)",
    'run_study(its.study, its.store, {"cpus": 2})',
    "run_study(its.study, its.store, listener=3)",
    'run_study(its.study, its.store, max_trials="3")',
    "run_study(its.study, its.store, max_failures=0)",
    'run_study(its.study, its.store, trial_ids="0a1b")',
    'run_study(its.study, its.store, trial_ids=[its.study.trials[0].id, "0a1b", "2c3d"])',
    "run_study(its.study, its.store, trial_ids=[its.study.trials[0].id[:8]])",
    'run_study(its.study, its.store, trial_ids=[f"{number:016x}" for number in range(99)])',
    'run_study(its.study, its.store, local="ray")',
    "next(probe_study(its.store, its.study))",
    "next(probe_study(its.study, its.store, sequences=0))",
    "next(tune_study(its.study, 7))",
    'query("SELECT 1", its.store)',
    'query(4, "SELECT 1")',
    'load_study(["first.toml"])',
    'load_study(TEXT, {"train.epochs": 2})',
    "load_study(TEXT, [2])",
    "open_study(its.store, its.study)",
    'open_study("first", its.store, 3)',
    "Store(3)",
    "parse(5)",
    "Space(None)",
    "its.results.table(0)",
    'its.results.curves(["course"])',
    "its.results.table().render(1)",
    'its.results.curve().render("gif")',
    'its.results.curve().render("svgz")',
    'its.results.plan(only={"task": "sort"})',
    'build("sa >> ff(8)", d_model="32", vocab=10)',
    'build("sa >> ff(8)", **SIZES, cutoffs=3)',
    'build("sa >> ff(8)", **SIZES, causal="yes")',
    'build("sa >> ff(8)", 32)',
    'build("sa >> ff(8)", **SIZES, generator=1)',
    'build("sa >> ff(8)", vocab=10)',
    'configure(d_model=8, dropout="0.1")',
    'analyse("sa", **SIZES, length=0)',
    'analyse("sa", **SIZES, length=10**10)',
    'analyse("sa", **SIZES, length=4, past=-1)',
    'analyse("sa", **SIZES, length=4.0)',
    'show_recipe("sa", **SIZES, length=-5)',
    'show_recipe("sa", **SIZES, length=5, batch=0)',
    'compare_recipes("sa", **SIZES, length=5)',
    'analyse("sa", **SIZES, length=-(10**400))',
    '"sa" in Space("sa")',
    'parse("{x} >> ff(8)").fill("relu")',
    "its.results.best(3)",
    'its.results.next_seeds(seconds="60")',
    "load_model(None)",
    "load_plugin(3)",
    'its.results.plan("cpu")',
    'show_example("reverse")',
    'draw_test_batches("reverse")',
    'register_metric("new", title="New", kinds=["taging"])',
    'register_metric("new", title="New", kinds="tagging")',
    'register_metric("new", title="New")(int)',
    'register_metric("new", title="New")(3)',
    'register_metric("new", title=3, decimals=-1, higher_is_better="yes")(Mean)',
    'register_metric("a b", title="New", kinds=["tagging"])(Mean)',
    'register_metric(None, title="New", kinds=["tagging"])(Mean)',
    'register_metric("accuracy", title="New", kinds=["tagging"])(Mean)',
    'register_probe("new", title="New", kinds="tagging")',
    'register_task("new", kind="x", summary="", source="")',
    'register_task("new", kind="tagging", summary="", source="")(GeneratedTask)',
    'register_callback("new", title="New", source="", metrics=["a"])',
    'register_optimizer("new", source="")(int)',
    'register_sampler("new", source="")(3)',
    'register_table_format("new")(3)',
    'register_norm("new", source="")(int)',
    "register_dataset(3)",
    "register_block(3)",
    "register_block(3, parameters=())(Block)",
    'register_block("new", parameters=())(3)',
    "keep_stale_trials(its.store, its.study)",
    "load_studies(3)",
    "Machine(cpus=0)",
    'Machine(cpus="two")',
    'Machine(cpus=float("nan"))',
    'Machine(gpus="one")',
    "Machine(time_limit_s=-1)",
]


@pytest.fixture
def its(tmp_path: Path) -> SimpleNamespace:
    study, store = load_study(TEXT), Store(tmp_path)
    return SimpleNamespace(study=study, store=store, results=open_study(study, store))


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_argument_is_named_with_what_was_expected(
    its: SimpleNamespace, call: str, golden: GoldenTexts
):
    with golden.raises(ActivememError):
        eval(call, NAMES | {"its": its})


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


def test_one_text_is_one_override(its: SimpleNamespace):
    asked = "train.epochs=3"
    assert (
        load_study(TEXT, asked).document.overrides == load_study(TEXT, [asked]).document.overrides == (asked,)
    )


def test_a_machine_takes_its_folder_as_a_text():
    assert Machine(data="corpora").data == Path("corpora")  # pyright: ignore[reportArgumentType] -- what is tested


def test_an_unknown_name_comes_with_the_nearest_one(golden):
    with golden.raises(AttributeError):
        _ = activemem.load_studdy  # pyright: ignore[reportAttributeAccessIssue] -- what is tested
    with pytest.raises(AttributeError, match=r"nearest: highway_conv$"):
        _ = activemem.highway_konv  # pyright: ignore[reportAttributeAccessIssue] -- what is tested
    assert not hasattr(activemem, "sa(p=0.5)")


def test_a_space_shows_its_recipe_shortened():
    assert repr(Space("choice(sa, conv(k=3)) >> ff(8)")) == "Space(choice(sa, conv(k=3)) >> ff(8))"
    wide = Space(" >> ".join(["choice(sa, cgru(k=3))"] * 20))
    assert repr(wide).endswith("…)")
    assert len(repr(wide)) < 100
