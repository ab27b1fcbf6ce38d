"""`match` solves sizes for equal FLOPs, state or parameters, also jointly."""

import re
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from activemem import Study, StudyError, load_study
from activemem.grammar import Analysis, analyse, parse
from activemem.reporting.kinds import build_table
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.plan_text import format_plan
from activemem.studies.resolve.costs import SizeMatch, sequence_tokens

from ...golden import GoldenTexts
from ...study_texts import study_text


def study_of(match: str | list[str], **study: Any) -> Study:
    keys = {"baseline": {"mixer": "sa(heads=2, head_width=4)", "filter": 64}, "tolerance": 0.02} | study
    return load_study(
        study_text(
            study={"match": match, **keys},
            model={"recipe": "2 * ({mixer} >> ff({filter}))", "d_model": 16, "dropout": 0.0},
            task={"name": "reverse"},
            train={"batch_size": 4, "curriculum": None, "lengths": [5, 5]},
            factors={
                "mixer": ["sa(heads=2, head_width=4)", "conv(k=3)", "gru"],
                "task": None,
                "seed": [0],
            },
        )
    )


def matches(study: Study) -> dict[str, SizeMatch]:
    return {str(trial.levels["mixer"]): study.size_matches[trial.id] for trial in study.trials}


def analysed(study: Study, mixer: str, size: int) -> Analysis:
    settings = study.trials[0].settings
    recipe, vocab = parse(f"2 * ({mixer} >> ff({size}))"), settings.task.interface.model.vocab
    return analyse(recipe, d_model=16, length=sequence_tokens(settings), vocab=vocab, dropout=0.0)


def test_no_other_size_is_nearer_to_the_baselines_cost() -> None:
    study = study_of("flops")

    def cost(mixer: str, size: int) -> float:
        return analysed(study, mixer, size).training_flops

    target = cost("sa(heads=2, head_width=4)", 64)
    for mixer, found in matches(study).items():
        assert found.size is not None
        near = {size: abs(cost(mixer, size) - target) for size in range(found.size - 3, found.size + 4)}
        assert near[found.size] == min(near.values())
        assert near[found.size] <= 0.02 * target


def test_equal_state_is_solved_over_the_heads_of_recurrences() -> None:
    levels = [f"{name}(heads={{heads}}, head_width={width})" for name, width in (("delta", 8), ("gla", 4))]
    study = load_study(
        study_text(
            study={"match": "state", "baseline": {"mixer": levels[0], "heads": 2}},
            model={"recipe": "{mixer} >> ff(32)", "d_model": 16},
            task={"name": "reverse"},
            factors={"mixer": levels, "task": None, "seed": [0]},
        )
    )
    first, second = (study.size_matches[trial.id] for trial in study.trials)
    assert (first.size, second.size) == (2, 8)
    assert str(second) == "512 B (+0 %)"


def stateless(match: str | list[str], mixer: str) -> Study:
    baseline = {"mixer": "ff(8)", "filter": 64}
    return load_study(
        study_text(
            study={"match": match, "baseline": baseline, "tolerance": 0.02},
            model={"recipe": "2 * ({mixer} >> ff({filter}))", "d_model": 16},
            task={"name": "reverse"},
            factors={"mixer": ["ff(8)", mixer], "task": None, "seed": [0]},
        )
    )


def test_cells_of_equal_state_at_the_baselines_size_keep_it() -> None:
    assert [match.size for match in matches(stateless("state", "glu(8)")).values()] == [64, 64]
    _, both = matches(stateless(["parameters", "state"], "glu(16)")).values()
    assert both.size is not None
    assert both.size < 64
    assert str(both).endswith("state 0 B (+0 %)")


def test_state_where_the_baseline_has_none_is_refused(golden: GoldenTexts) -> None:
    with golden.raises(StudyError):
        stateless("state", "sa(heads=2)")
    with golden.raises(StudyError):
        stateless(["parameters", "state"], "sa(heads=2)")


def test_two_costs_at_once_are_refused_with_the_nearest_to_both() -> None:
    with pytest.raises(StudyError) as error:
        study_of(["flops", "parameters"], tolerance=0.0)
    assert " within 0 %; filter=" in str(error.value)
    loose = study_of(["flops", "parameters"], tolerance=0.9)
    tokens = sequence_tokens(loose.trials[0].settings)
    for mixer, found in matches(loose).items():
        if mixer.startswith("sa"):
            continue
        flops, parameters = found.costs
        assert flops.relative_residual * parameters.relative_residual <= 0
        assert found.size is not None
        farthest = {
            size: max(
                abs(analysed(loose, mixer, size).training_flops / tokens / flops.target - 1),
                abs(analysed(loose, mixer, size).parameters / parameters.target - 1),
            )
            for size in range(found.size - 2, found.size + 3)
        }
        assert farthest[found.size] == min(farthest.values())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_plan_shows_both_residuals_of_two_costs(width: int, tmp_path: Path) -> None:
    study = study_of(["flops", "parameters"], tolerance=0.9)
    text = format_plan(make_plan(study, Store(tmp_path)), width=width)
    for mixer, found in matches(study).items():
        [at] = [at for at, line in enumerate(text.splitlines()) if line.startswith(f"  {mixer}")]
        shown = " ".join(text.splitlines()[at : at + 2])
        assert ", ".join(cost.percent for cost in found.costs) in shown
    assert "the flops and parameters" in text


@pytest.mark.parametrize("width", range(64, 92, 4))
def test_the_plan_cuts_no_name_that_fits_into_a_line(width: int, tmp_path: Path) -> None:
    names = ["attention", "convolution", "attention + convolution"]
    text = study_text(
        study={"match": ["flops", "parameters"], "baseline": {"mixer": "{attention}", "filter": 64}}
        | {"tolerance": 0.9},
        model={"recipe": "2 * ({mixer} >> ff({filter}))"},
        task={"name": "reverse"},
        recipes={"attention": "sa(heads=2, head_width=4)", "convolution": "conv(k=3)"},
        factors={"mixer": ["{attention}", "{convolution}", "{attention} + {convolution}"]},
    )
    lines = format_plan(make_plan(load_study(text), Store(tmp_path)), width=width).splitlines()
    for name in names:
        assert any(f"{line}  ".startswith(f"  {name}  ") for line in lines), lines


@pytest.mark.parametrize("first", ["mixer", "task"])
def test_the_plan_has_the_models_of_each_task_whose_sizes_differ_there(first: str, tmp_path: Path) -> None:
    tasks = [
        {"label": name, "name": name, **keys, "vocab": 16}
        for name, keys in (("mqar", {"length": 64, "pairs": 4}), ("induction_heads", {"lengths": [8, 16]}))
    ]
    levels = {"mixer": ["sa(heads=2, head_width=8)", "gla(heads=2, head_width=8)"], "task": tasks}
    study = load_study(
        study_text(
            study={"match": "flops", "baseline": {"mixer": levels["mixer"][0], "filter": 64}},
            model={"recipe": "2 * ({mixer} >> ff({filter}))", "d_model": 16},
            task={"name": "{task}"},
            train={"curriculum": None},
            factors={first: levels[first], **levels, "seed": [0]},
        )
    )
    plan = make_plan(study, Store(tmp_path))
    sizes = {trial.id: study.size_matches[trial.id].size for trial in study.trials}
    assert len(set(sizes.values())) == 3
    lines = [line.split()[0] for line in str(plan).splitlines() if line.startswith("  ")]
    names = ["sa", "gla"]
    assert lines[1:7] == ["mqar", *names, "induction_heads", *names]
    assert {(model.at, model.size_match.size) for model in plan.models if model.size_match} == {
        (str(trial.levels["task"]), sizes[trial.id]) for trial in study.trials
    }
    assert "at the same task" in " ".join(str(plan).split())


def test_a_cost_that_is_named_twice_is_refused(golden: GoldenTexts) -> None:
    with golden.raises(StudyError):
        study_of(["flops", "flops"])


def test_an_unknown_cost_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StudyError, match="flops"):
        study_of("flop")


def test_a_ladder_of_equal_flops_says_by_how_much_whole_trainings_differ(tmp_path: Path) -> None:
    ladder = "[ladder]\nsizes = { width = [16, 32] }\ntokens_per_parameter = 400\n"
    text = ladder + study_text(
        study={"match": "flops", "baseline": {"mixer": "sa", "filter": 64}, "tolerance": 0.02},
        model={"recipe": "{mixer} >> ff({filter})", "d_model": "{width}", "dropout": 0.0},
        task={"name": "reverse"},
        train={"batch_size": 4, "curriculum": None, "lengths": [5, 5], "steps_per_epoch": None},
        factors={"mixer": ["sa", "gru"], "task": None, "seed": [0]},
        table=[{"name": "t", "rows": "mixer", "columns": "width", "value": "loss"}],
    )
    study = load_study(text)
    trains = [each.settings.train for each in study.trials]
    steps = [train.epochs * train.steps_per_epoch for train in trains]
    by_mixer = zip(steps[:2], steps[2:], strict=True)
    percent = max(abs(gru / sa - 1) for sa, gru in by_mixer) * 100
    words = f"whole trainings differ by up to {ceil(percent)} % in steps and FLOPs"
    store = Store(tmp_path)
    assert words in " ".join(format_plan(make_plan(study, store, memory=None)).split())
    caption = build_table(study, study.tables[0], store.trials()).sentences
    assert f"Models have equal FLOPs a token, exactly; {words}." in caption


@pytest.mark.parametrize(
    ("mixers", "size", "tolerance", "remedy"),
    [
        (
            ("conv(k=2)", "conv(k=2) + conv(k=9)"),
            3,
            0.05,
            r"raise the baseline's `filter` from 3 to (\d+) or more",
        ),
        (
            ("2 * glu({filter})", "glu({filter})"),
            900_000,
            0.05,
            r"lower the baseline's `filter` from 900000 to (\d+) or less",
        ),
        (("conv(k=2)", "conv(k=3)"), 40, 1e-9, r"set tolerance = ([\d.e-]+)"),
    ],
)
def test_a_cell_that_cannot_match_is_told_with_a_change_that_helps(
    mixers: tuple[str, str], size: int, tolerance: float, remedy: str
) -> None:
    recipe, levels = "2 * ({mixer} >> ff({filter}))" if size < 100 else "{mixer}", list(mixers)

    def study(size: int, tolerance: float) -> Study:
        keys = {
            "match": "parameters",
            "baseline": {"mixer": levels[0], "filter": size},
            "tolerance": tolerance,
        }
        return load_study(
            study_text(
                study=keys,
                model={"recipe": recipe, "d_model": 16},
                task={"name": "reverse"},
                factors={"mixer": levels},
            )
        )

    with pytest.raises(StudyError) as error:
        study(size, tolerance)
    (message,) = error.value.messages
    found = re.search(f": {remedy}$", message)
    assert found, message
    changed = (size, float(found[1])) if "tolerance" in remedy else (int(found[1]), tolerance)
    assert len(study(*changed).cells) == 2
