"""Kinds of names in `list` and `show` other than blocks and tasks."""

import json
import re
from pathlib import Path

import pytest

from activemem.errors import FaultCollector
from activemem.grammar.norms import NORMS
from activemem.grammar.positions import POSITIONS
from activemem.studies.catalog.optimisers import OPTIMIZERS, SCHEDULES
from activemem.studies.catalog.samplers import SAMPLERS, SCHEDULERS
from activemem.studies.claims.parser import parse_claim
from activemem.studies.presentation.reader import KINDS
from activemem.studies.schema.settings import DESIGNS


@pytest.mark.parametrize(
    ("kind", "key", "registry"),
    [
        ("norms", "[model] norm_kind", NORMS),
        ("positions", "[model] position", POSITIONS),
        ("optimizers", "[train] optimizer", OPTIMIZERS),
        ("schedules", "[train] schedule", SCHEDULES),
        ("samplers", "[search] sampler", SAMPLERS),
        ("schedulers", "[search] scheduler", SCHEDULERS),
        ("designs", "[study] design", DESIGNS),
        ("tables", "[[table]] kind", KINDS["table"]),
        ("curves", "[[curve]] kind", KINDS["curve"]),
    ],
)
def test_every_name_is_listed_with_its_key_and_owner_and_each_is_shown(kind, key, registry, run):
    listed = json.loads(run("list", kind, "--json").stdout)["names"]
    found = [(each["key"], each["name"], each["owner"]) for each in listed]
    assert found == [(key, name, "activemem") for name in registry]
    first, *lines = run("list", kind).stdout.splitlines()
    assert (first, len(lines) >= len(registry)) == (key, True)
    for each in listed:
        shown = json.loads(run("show", each["name"], "--json").stdout)["names"]
        (own,) = (one for one in shown if one["kind"] == kind)
        brief = ("kind", "name", "title", "source", "owner", "key")
        assert {name: own[name] for name in brief} == {name: each[name] for name in brief}
    assert run("show", each["name"]).stdout.startswith(each["name"])


@pytest.mark.parametrize("kind", ["designs", "tables", "curves"])
def test_every_design_and_kind_of_table_or_figure_says_what_it_shows(kind, run):
    for each in json.loads(run("list", kind, "--json").stdout)["names"]:
        assert len(each["title"]) > 20


def test_a_design_is_shown_with_its_keys_and_source(run, golden):
    golden(re.sub(r"sha256 \w+", "sha256 …", run("show", "fractional", "--plugin", "sampled_designs").stdout))


def test_a_kind_of_table_is_shown_with_its_keys(run):
    shown = run("show", "speedup").stdout
    assert shown.startswith("speedup: costs to reach a target, relative to a baseline\n")
    assert "\n    rows (text; required)\n" in shown


def test_a_sampler_is_shown_with_its_keys_and_source(run):
    shown = run("show", "tpe").stdout
    assert "  source   Bergstra et al. 2011; Watanabe 2023\n  [search] sampler\n" in shown
    assert "    n_startup_trials (whole number, at least 0; default 10)\n" in shown


def test_a_metric_is_shown_with_its_direction(run):
    assert "  better   higher\n" in run("show", "max_length").stdout
    (shown,) = json.loads(run("show", "loss", "--json").stdout)["names"]
    assert shown["facts"]["better"] == "lower"


def test_a_name_that_two_kinds_have_is_shown_twice(run):
    both = run("show", "none").stdout
    assert ("  kind     position\n" in both, "  kind     scheduler\n" in both) == (True, True)
    shown = json.loads(run("show", "none", "--json").stdout)["names"]
    assert [each["kind"] for each in shown] == ["positions", "schedulers"]


def test_names_that_plug_ins_register_are_listed_and_shown(process, golden):
    golden(process("list", "callbacks").stdout)
    Path("halves.py").write_text(HALVES, encoding="utf-8")
    found = [
        process(*words, "--plugin", "halves.py").stdout for words in (("list", "norms"), ("show", "half"))
    ]
    assert "half         nobody · halves.py" in found[0]
    assert "plug-in  halves.py, sha256 " in found[1]


HALVES = """
from activemem import PluginNorm, register_norm

@register_norm("half", source="nobody")
class Half(PluginNorm):
    def build(self, width, eps):
        return None
"""


@pytest.mark.parametrize(
    "words",
    [
        ("show", "adm"),
        ("show", "paradise-lost"),
        ("list", "block"),
    ],
    ids=str,
)
def test_an_unknown_name_is_refused_with_the_nearest(words, run, golden):
    refused = run(*words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    golden(refused.stderr)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("delta rule", "delta, delta_product, kda, rwkv7"),
        ("sliding window", "sa"),
        ("SMALLEST kernel foo", None),
    ],
)
def test_the_words_of_a_description_find_the_names(words, found, run):
    refused = run("show", words)
    assert refused.exit_code == 2
    told = refused.stderr.splitlines()[0]
    assert told.endswith(f"in the descriptions of: {found}") == (found is not None)


def test_a_command_without_its_group_is_reported_with_the_group(run):
    refused = run("run", "mine.toml")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Use: activemem study run" in refused.stderr
    assert "Use: activemem study plan" in run("plan").stderr


@pytest.mark.parametrize(
    "name", ["grow_at", "curriculum.grow_at", "train.curriculum.grow_at", "[train] curriculum.grow_at"]
)
def test_a_key_of_study_files_is_explained_by_its_name_with_or_without_its_table(name, run, golden):
    golden(run("show", name).stdout)


def test_a_key_of_several_tables_is_explained_for_each(run):
    # other tests may have registered a part of a training with such a key
    first, second, *_ = run("show", "match").stdout.split("\n\n")
    assert first.startswith("[study] match (list of ") and second.startswith(
        "[train] groups.match (text; required)"
    )
    found = json.loads(run("show", "table.rows", "--json").stdout)["keys"]
    assert {"cells"} in [set(each["of"]) for each in found]
    assert {each["table"] for each in found} == {"[[table]]"}


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        (
            "n_startup_trials",
            "[search] sampler.n_startup_trials (whole number, at least 0; default 10) of",
        ),
        ("population", "[search] sampler.population (whole number, at least 2; default 20) of evolution"),
        ("documents", "[task] corpus.documents (list of tables; required) of language_model"),
        ("corpus.split", "[task] corpus.split (text; default none) of translation,"),
        ("train.optimizer.weight_decay", "[train] optimizer.weight_decay (number, at least 0; default 0.0)"),
        ("schedule.cooldown", "[train] schedule.cooldown (whole number, at least 0; default 0) of"),
        ("train.schedule", "[train] schedule (table)"),
    ],
)
def test_keys_of_searches_own_data_and_optimizers_are_explained(name, heading, run):
    heading_shown, *meaning = run("show", name).stdout.splitlines()
    assert heading_shown.startswith(heading)
    assert meaning


def test_every_key_of_study_files_is_explained_by_its_full_name(run):
    found = json.loads(run("show", "search", "--json").stdout)["table"]["keys"]
    found += json.loads(run("show", "train", "--json").stdout)["table"]["keys"]
    for each in found:
        shown = json.loads(run("show", f"{each['table'].strip('[]')}.{each['key']}", "--json").stdout)
        assert each in shown["keys"]
        assert each["description"]


@pytest.mark.parametrize(
    "name",
    [
        *("study", "model", "task", "train", "search", "factors", "recipes", "when", "cells", "source"),
        *("ladder", "decode", "table", "curve", "claim"),
    ],
)
def test_every_table_of_study_files_is_explained_by_its_name(name, run):
    shown = run("show", name)
    assert (shown.exit_code, f"[{name}]" in shown.stdout) == (0, True)


def test_the_table_of_claims_is_shown_with_its_keys_and_examples_of_its_language(run):
    shown = run("show", "claim").stdout
    assert shown.startswith("[[claim]]: ")
    assert "\nholds (text; required)\n  the statement to test\n" in shown
    examples, page = shown.split("examples of holds\n")[1].split("\n\n")
    assert (len(examples.splitlines()), page) == (5, "all forms: docs/reference/keys-claims.md\n")
    for example in examples.splitlines():
        parse_claim(example.strip(), faults := FaultCollector(example.strip()))
        assert not faults
    assert run("show", "figure").stdout.startswith("[[curve]]: ")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.layers", "unknown key 'model.layers'; write the layers in the recipe, as in recipe = "),
        ("train.optimizer.learning_rate", "unknown key 'train.optimizer.learning_rate'; nearest: "),
        ("claim.hold", "unknown key 'claim.hold'; nearest: claim.holds"),
    ],
)
def test_a_dotted_name_that_is_no_key_is_refused_as_a_key(name, message, run):
    refused = run("show", name)
    assert (refused.exit_code, refused.stderr.startswith(message)) == (2, True)


def test_the_value_of_an_argument_leads_to_its_block(run):
    refused = run("show", "alibi")
    told = "alibi is the value of an argument, as in sa(pos=alibi): activemem show sa"
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (2, told)


def test_a_misspelt_key_is_refused_with_the_nearest(run):
    result = run("show", "grow_att")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2,
        "unknown name 'grow_att'; nearest: grow_at",
    )
