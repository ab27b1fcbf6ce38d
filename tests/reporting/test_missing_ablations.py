"""Missing ablations: found in recipes and settings, and written as a study."""

import pytest

from activemem import load_study
from activemem.grammar import parse
from activemem.reporting import MissingError, find_missing
from activemem.storage import Store
from activemem.studies import make_plan

from ..cli.store_factories import store_outcome
from ..study_texts import study_text

MIXERS = ["sa(heads=1, head_width=8)", "highway_conv(k=3)", "sa(heads=1, head_width=8) + highway_conv(k=3)"]
TASK = {"name": "reverse"}


def missing(**tables):
    return find_missing(load_study(study_text(**{"task": TASK, **tables})))


def changes(found, kind):
    return {
        request.change: [cell.model for cell in request.cells]
        for request in found.requests
        if request.kind == kind
    }


def test_parts_that_no_recipe_of_the_study_lacks_are_missing():
    found = missing(factors={"mixer": MIXERS, "seed": [0, 1]})
    parts = [request for request in found.requests if request.kind == "part"]
    recipes = [request.cells[0].settings.model.recipe for request in parts]
    assert "2 * ff(8)" in recipes
    assert "2 * (highway_conv(k=3) >> ff(8))" not in recipes, "the study trains it"
    assert len(recipes) == len({parse(recipe).identity for recipe in recipes}), "each is asked for once"


def test_parts_that_a_block_has_by_default_are_missing_too():
    parts = changes(missing(factors={"mixer": ["kda(heads=1, head_width=4)"], "seed": [0, 1]}), "part")
    assert {change for change in parts if change.endswith("of kda")} == {
        *("− short_conv=4 of kda", "− qk_norm=l2 of kda"),
        *("− head_norm=rms of kda", "− output_gate=sigmoid of kda"),
    }


def test_a_recipe_that_differs_from_a_trained_one_in_its_matched_size_is_not_missing():
    delta = "delta(heads=1, head_width=4{})"
    found = missing(
        study={"match": "parameters", "baseline": {"mixer": delta.format(", short_conv=4"), "filter": 32}},
        model={"recipe": "2 * ({mixer} >> ff({filter}))"},
        factors={"mixer": [delta.format(", short_conv=4"), delta.format("")], "seed": [0, 1]},
    )
    parts = changes(found, "part")
    assert "− short_conv=4 of delta" not in parts, "the study trains it at another filter"


def test_a_matched_size_that_does_not_fit_another_recipe_is_no_fault():
    found = find_missing(load_study("which-mixer-state"))  # a width of 31 does not fit attention with rope
    assert {request.kind for request in found.requests} >= {"part", "setting"}


@pytest.mark.parametrize(("span", "asked"), [(8, True), (16, False), (64, False)])
def test_a_span_that_no_sequence_exceeds_is_not_removed(span, asked):
    found = missing(
        task={"name": "mqar", "length": 16, "pairs": 2, "vocab": 16},
        factors={"mixer": [f"sa(heads=1, head_width=8, span={span})"]},
        train={"curriculum": None},
    )
    assert (f"− span={span} of sa" in changes(found, "part")) == asked


def test_an_argument_is_a_part_only_if_its_removal_adds_no_parameters():
    found = missing(factors={"mixer": ["delta(heads=1, head_width=4, short_conv=2)"], "seed": [0, 1]})
    parts = changes(found, "part")
    assert "− short_conv=2 of delta" in parts
    assert not any("heads" in change for change in parts if change.endswith("of delta"))


@pytest.mark.parametrize("mixer", ["slstm(heads=1, head_width=8)", "ssd(heads=1, head_width=8, state=4)"])
def test_a_block_of_another_kind_is_no_simpler_block(mixer):
    assert not changes(missing(factors={"mixer": [mixer], "seed": [0, 1]}), "neighbour")


def test_a_simpler_block_takes_the_same_arguments_and_has_fewer_weights():
    found = missing(factors={"mixer": ["highway_conv(k=3)"], "seed": [0, 1]})
    [change] = changes(found, "neighbour")
    assert change == "highway_conv(k=3) → conv(k=3)"
    tried = missing(factors={"mixer": ["highway_conv(k=3)", change.partition(" → ")[2]], "seed": [0, 1]})
    assert change not in changes(tried, "neighbour")


def test_the_baseline_gets_other_rates_unless_it_has_been_tried_at_several():
    assert list(changes(missing(factors={"mixer": MIXERS[:2]}), "baseline")) == ["lr = 0.0003", "lr = 0.003"]
    varied = missing(
        factors={"mixer": MIXERS[:2], "lr": [1e-3, 3e-3]}, train={"optimizer": {"name": "adam", "lr": "{lr}"}}
    )
    assert not changes(varied, "baseline")
    assert not any(change.startswith("lr") for change in changes(varied, "setting"))


def test_sizes_that_the_study_varies_are_not_asked_for():
    fixed = changes(missing(factors={"mixer": MIXERS[:2]}), "setting")
    assert {"d_model = 4", "d_model = 16", "2 × → 1 ×", "2 × → 4 ×"} <= fixed.keys()
    assert len(fixed["d_model = 16"]) == 2, "every model is asked for"
    varied = missing(
        model={"recipe": "{layers} * ({mixer} >> ff(8))", "d_model": "{width}"},
        factors={"mixer": MIXERS[:2], "layers": [1, 2], "width": [8, 16]},
    )
    assert not {"d_model", "1 ×", "2 ×"} & {
        change.partition(" = ")[0] for change in changes(varied, "setting")
    }
    assert varied.held == {"layers": 1, "width": 8}
    assert len(varied.models) == 2, "numbers make no other model"


def test_each_setting_that_a_reviewer_asks_for_has_another_value():
    train = {
        "optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1},
        "clip_norm": 0.5,
        "batch_size": 4,
    }
    schedule = {"name": "cosine", "warmup": 2}
    found = changes(
        missing(factors={"mixer": MIXERS[:1]}, model={"dropout": 0.0}, train={**train, "schedule": schedule}),
        "setting",
    )
    for change in (
        *("norm = post", "norm_kind = rms_norm", "dropout = 0.1", "batch_size = 2", "batch_size = 8"),
        *("schedule = constant", "weight_decay = 0.0", "− clip_norm"),
    ):
        assert change in found, change


def test_times_are_those_of_the_plan_of_the_study_that_is_written(tmp_path, monkeypatch):
    found, store = missing(factors={"mixer": MIXERS[:2], "seed": [0, 1]}), Store(tmp_path)
    for trial in found.study.trials:
        store_outcome(trial, store)
    monkeypatch.setattr("platform.node", lambda: "elsewhere")  # the host of the stored outcomes
    costs = found.costs(store)
    plan = make_plan(load_study(found.study_text(["asked for"] * len(found.requests))), store)
    assert sum(len(cost.trials) for cost in costs) == plan.left
    assert sum(cost.estimate.seconds for cost in costs) == pytest.approx(plan.estimate.seconds)


def test_the_length_of_a_task_is_halved_and_doubled():
    found = missing(
        task={"name": "mqar", "length": 16, "pairs": 2, "vocab": 16},
        factors={"mixer": ["sa(heads=1, head_width=8)"]},
        train={"curriculum": None},
    )
    assert {"length = 8", "length = 32"} <= changes(found, "setting").keys()


def test_a_study_of_one_seed_is_asked_for_three_in_all_cells():
    one = missing(factors={"mixer": MIXERS[:2], "task": ["reverse", "not"]}, task={"name": "{task}"})
    [request] = [request for request in one.requests if request.kind == "seeds"]
    assert len(request.cells) == 4
    assert one.seeds == (0, 1, 2)
    assert not changes(missing(factors={"mixer": MIXERS[:2], "seed": [0, 1]}), "seeds")


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param({"factors": {"mixer": MIXERS}}, id="one seed"),
        pytest.param({"factors": {"mixer": MIXERS[:1], "seed": [3, 4]}}, id="one model"),
        pytest.param({"factors": {"mixer": MIXERS[:2]}, "train": {"clip_norm": 0.5}}, id="clipped gradients"),
        pytest.param(
            {"factors": {"mixer": MIXERS[:2], "task": ["reverse", "not"]}, "task": {"name": "{task}"}},
            id="several tasks",
        ),
        pytest.param(
            {
                "factors": {
                    "mixer": MIXERS[:2],
                    "task": [
                        {"name": "mqar", "length": 16, "pairs": 2, "vocab": 16},
                        {"name": "parity", "lengths": [3, 8]},
                    ],
                },
                "task": {"name": "{task}"},
                "train": {"curriculum": None},
            },
            id="tasks that are tables",
        ),
        pytest.param(
            {
                "study": {"match": "parameters", "baseline": {"mixer": MIXERS[0], "filter": 32}},
                "model": {"recipe": "2 * ({mixer} >> ff({filter}))"},
                "factors": {"mixer": MIXERS[:2], "seed": [0, 1]},
            },
            id="matched sizes",
        ),
    ],
)
def test_the_study_that_is_written_has_every_trial_that_is_missing(tables, tmp_path):
    found = missing(**tables)
    costs = found.costs(Store(tmp_path))
    written = load_study(found.study_text(["asked for"] * len(found.requests)))
    asked = {trial for cost in costs for trial in cost.trials}
    assert asked
    assert asked <= {trial.id for trial in written.trials}
    assert {trial.id for trial in find_models(found)} <= {trial.id for trial in written.trials}
    assert all(cost.flops > 0 for cost in costs if cost.trials)


def test_the_plan_of_the_study_that_is_written_calls_models_by_their_labels(tmp_path):
    found = missing(factors={"mixer": MIXERS[:2], "seed": [0]})
    written = load_study(found.study_text(["asked for"] * len(found.requests)))
    labels = [model.label for model in make_plan(written, Store(tmp_path)).models]
    assert {f"{cell.model} · {cell.change}" for cell in found.models} <= set(labels)
    assert all(label.count(" · ") == 1 for label in labels)


def find_models(found):
    return [trial for cell in found.models for trial in cell.trials("any", found.seeds)]


def test_a_model_is_the_cell_of_the_study_itself():
    found = missing(factors={"mixer": MIXERS, "seed": [0, 1]})
    assert {trial.id for trial in find_models(found)} == {trial.id for trial in found.study.trials}


def test_a_search_is_refused_with_what_to_do():
    text = study_text(
        task=TASK,
        train={"curriculum": {"start": 5}},
        search={"metric": "max_length", "trials": 2},
        space={"mixer": "choice(conv(k=3), conv(k=5))"},
    )
    with pytest.raises(MissingError, match="study promote"):
        find_missing(load_study(text))


def test_a_batch_of_one_sequence_is_not_halved():
    found = missing(factors={"mixer": MIXERS[:1]}, train={"batch_size": 1})
    asked = [each for each in changes(found, "setting") if each.startswith("batch_size")]
    assert asked == ["batch_size = 2"]
