"""Packs in plans."""

from pathlib import Path

import pytest

from ...study_texts import SEARCH_OF_RUNGS, replaced, study_text

FACTORS = {"mixer": ["sa(heads=2)", "conv(k=3)"], "task": ["sort", "remember"], "seed": [0, 1, 2]}


def plan(run, monkeypatch, pack, *arguments, factors=FACTORS, **tables):
    """Return the packs line of a study's plan as one string; None without one."""
    if pack is not None:
        monkeypatch.setenv("ACTIVEMEM_PACK", pack)
    tables = {"study": {"name": "packed", "title": "Packed"}, **tables}
    tables["model"] = {"recipe": "2 * ({mixer} >> ff(32))", "d_model": 16}
    Path("packed.toml").write_text(study_text(**tables, factors=factors), encoding="utf-8")
    result = run("study", "plan", "packed.toml", *arguments)
    assert result.exit_code == 0, result.stderr
    told = [part for part in result.stdout.split("\n\n") if part.startswith("  packs")]
    return " ".join(told[0].split()) if told else None


def test_without_packs_a_plan_says_nothing_of_them(run, monkeypatch):
    assert plan(run, monkeypatch, None) is None


@pytest.mark.parametrize(
    "pack",
    [
        "auto",
        "4",
    ],
)
def test_trials_of_one_model_can_train_together(run, monkeypatch, pack, golden):
    golden(plan(run, monkeypatch, pack))


def test_trials_without_a_pack_are_reported_with_the_reason(run, monkeypatch, golden):
    adaptive = "sa(heads=2, span=4, adaptive=true, ramp=2)"
    mixers = {**FACTORS, "mixer": ["sa(heads=2)", adaptive], "task": ["sort"]}
    told = plan(run, monkeypatch, "4", factors=mixers)
    golden(told)
    single = plan(run, monkeypatch, "4", "--only", "seed=1", factors=mixers)
    golden(single)


def test_if_all_trials_train_separately_the_reason_is_reported_once(run, monkeypatch, golden):
    told = plan(run, monkeypatch, "auto", train={"batch_size": 4, "accumulate": 2})
    golden(told)


def plan_search(run, monkeypatch, pack, *changes):
    """Return the packs line of a plan of a modified rungs search."""
    monkeypatch.setenv("ACTIVEMEM_PACK", pack)
    Path("rungs.toml").write_text(replaced(SEARCH_OF_RUNGS, *changes), encoding="utf-8")
    (told,) = (
        part for part in run("study", "plan", "rungs.toml").stdout.split("\n\n") if part.startswith("  packs")
    )
    return " ".join(told.split())


def test_the_seeds_of_a_point_of_a_search_train_together(run, monkeypatch, golden):
    seeds = ("seed = [0]", "seed = [0, 1, 2]")
    golden(plan_search(run, monkeypatch, "3", seeds))
    golden(plan_search(run, monkeypatch, "auto", seeds))


def test_the_trials_of_a_search_of_one_seed_or_of_a_race_train_separately(run, monkeypatch, golden):
    alone = plan_search(run, monkeypatch, "auto")
    golden(alone)
    race = [
        ("seed = [0]", "seed = [0, 1, 2]"),
        ('scheduler = { name = "asha", fidelity = "width", reduction = 3 }', 'scheduler = "race"'),
    ]
    assert plan_search(run, monkeypatch, "auto", *race) == alone


def test_nothing_is_reported_where_all_trials_have_ended(run, monkeypatch):
    one = {"mixer": ["conv(k=3)"], "task": ["sort"]}
    assert plan(run, monkeypatch, "auto", factors=one) is not None
    assert run("study", "run", "packed.toml", "--local").exit_code == 0
    assert plan(run, monkeypatch, "auto", factors=one) is None
