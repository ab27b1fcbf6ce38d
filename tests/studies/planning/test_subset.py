"""Subsets of a study: trials with selected levels."""

import pytest

from activemem import Study, StudyError, load_study
from activemem.studies import select_trials
from activemem.studies.planning.trials_to_run import select_shard

from ...golden import GoldenTexts
from ...study_texts import study_text

STUDY = study_text(
    study={"name": "parts", "title": "Parts"},
    model={"recipe": "{model}"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 9},
    recipes={"attention": "sa(heads=2, head_width=4) >> ff(8)"},
    factors={
        "model": ["{attention}", "conv(k=3) >> ff(8)", "cgru(k=3) >> ff(8)"],
        "task": ["sort", "not"],
        "lr": [0.01, 0.001],
        "seed": [0, 1],
    },
    cells=[{"model": "ff(8)", "task": "not", "lr": 0.001}],
)


@pytest.fixture(scope="module")
def study() -> Study:
    return load_study(STUDY)


def levels(study: Study, *wanted: str) -> set[tuple[object, ...]]:
    ids = select_trials(study, wanted)
    return {tuple(trial.levels.values()) for trial in study.trials if trial.id in ids}


def test_all_named_factors_must_match_and_any_level_of_one_factor(study: Study) -> None:
    assert len(levels(study, "task=not")) == 14
    assert levels(study, "task = not", "lr=0.001", "seed=1", "model=ff(8)", "model=attention") == {
        ("{attention}", "not", 1e-3, 1),
        ("ff(8)", "not", 1e-3, 1),
    }


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("{attention}", "{attention}"),
        ("attention", "{attention}"),
        ("conv(k=3) >> ff(8)", "conv(k=3) >> ff(8)"),
        ("conv >> ff", "conv(k=3) >> ff(8)"),
    ],
)
def test_a_level_is_called_as_the_study_spells_it_or_as_people_read_it(
    study: Study, word: str, model: str
) -> None:
    assert {found[0] for found in levels(study, f"model={word}")} == {model}


def test_numbers_may_be_spelled_in_any_way(study: Study) -> None:
    assert levels(study, "lr=1e-3") == levels(study, "lr=0.001") == levels(study, "lr=.00100")


def test_every_fault_is_reported_together(study: Study) -> None:
    with pytest.raises(StudyError) as error:
        select_trials(study, ["model=sa", "tusk=sort", "lr=3", "seed", "task=sort"])
    assert [fault.message for fault in error.value.faults] == [
        "unknown level '3' of lr; known: 0.001, 0.01",
        "unknown level 'sa' of model; known: attention, cgru(k=3) >> ff(8), conv(k=3) >> ff(8), ff(8)",
        "unknown level '' of seed; known: 0, 1",
        "unknown factor 'tusk'; nearest: task",
    ]
    assert "\n  --only | lr=3\n              ^  unknown level '3' of lr; known: 0.001, 0.01\n" in str(
        error.value
    )


def test_an_unknown_factor_alone_is_a_fault(study: Study) -> None:
    with pytest.raises(StudyError, match=r"\^\^\^\^  unknown factor 'tusk'; nearest: task"):
        select_trials(study, ["tusk=sort"])


def test_levels_that_never_come_together_are_a_fault(study: Study, golden: GoldenTexts) -> None:
    with golden.raises(StudyError):
        select_trials(study, ["model=ff(8)", "task=sort"])


def test_a_level_whose_trials_are_all_over_the_budget_is_known(golden: GoldenTexts) -> None:
    small = load_study(STUDY.replace('title = "Parts"', 'title = "Parts"\nlimits.parameters = "<= 840"'))
    assert {trial.levels["model"] for trial in small.over_budget} == {"cgru(k=3) >> ff(8)"}
    with golden.raises(StudyError):
        select_trials(small, ["model=cgru >> ff"])


def test_a_search_has_no_parts(golden: GoldenTexts) -> None:
    with golden.raises(StudyError):
        select_trials(load_study("search-mixers"), ["seed=0"])


@pytest.mark.parametrize("count", [1, 3, 16])
def test_shards_are_disjoint_and_together_all_of_it_whatever_the_order_of_the_study(
    study: Study, count: int
) -> None:
    shards = [select_shard(study, f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(trial for shard in shards for trial in shard) == sorted(each.id for each in study.trials)
    turned = load_study(STUDY.replace('["sort", "not"]', '["not", "sort"]'))
    assert [trial.id for trial in turned.trials] != [trial.id for trial in study.trials]
    assert [select_shard(turned, f"{number}/{count}") for number in range(1, count + 1)] == shards


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "3/0", "-1/3", "1/3/5", "a/b", "", "1/3\n", "\u0663/4"])
def test_a_shard_that_does_not_exist_is_refused(study: Study, text: str) -> None:
    with pytest.raises(StudyError) as error:
        select_shard(study, text)
    (fault,) = error.value.faults
    assert fault.message.startswith("--shard: ")
    assert fault.message.endswith(f", got {text!r}")


def test_a_search_has_no_shards(golden: GoldenTexts) -> None:
    with golden.raises(StudyError):
        select_shard(load_study("search-mixers"), "1/2")
