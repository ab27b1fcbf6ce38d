"""Plans: stored trials, costs, times, and insufficient reach."""

import json
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from activemem import load_study
from activemem.grammar import analyse, parse
from activemem.storage import Store, TrialRow
from activemem.studies import make_plan, study_status
from activemem.studies.catalog.tasks import TASKS
from activemem.studies.planning.accelerators import AcceleratorError, time_on
from activemem.studies.planning.time_estimates import UNKNOWN_TIME, TimeEstimate
from activemem.studies.resolve.costs import (
    REFERENCE_TOKENS,
    analysis,
    longest_length,
    max_learnable_length,
    max_training_flops,
)

from ..study_texts import study_text

SMALL = study_text(
    study={"name": "small", "title": "A small study"},
    model={"recipe": "2 * ({mixer} >> ff(16))", "d_model": 16},
    train={"epochs": 30, "steps_per_epoch": 10},
    factors={"mixer": ["sa", "conv(k=5)"], "task": ["not", "remember"], "seed": [0, 1]},
)

SEARCH = (
    SMALL[: SMALL.index("[factors]")].replace("{mixer}", "conv(k={k})").replace("{task}", "remember")
    + """\
[factors]
seed = [0, 1]

[search]
trials = 7
metric = "max_length"
direction = "max"

[search.space]
k = "integer(3, 9)"
"""
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def keep(store, trial, *, seconds=10.0, status="done", minutes=0, flops=1e9, **changes):
    """Store an outcome of a trial on this machine."""
    finished = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    row = {
        "trial": trial.id,
        "attempt": 0,
        "study": trial.study,
        "recipe": trial.settings.model.recipe,
        "recipe_id": parse(trial.settings.model.recipe).id,
        "task": trial.settings.task.name,
        "seed": trial.settings.seed,
        "status": status,
        "reason": None if status == "done" else "why",
        "factors": json.dumps(dict(trial.levels)),
        "settings": "{}",
        "metrics": (("max_length", 5.0),),
        "parameters": 1,
        "flops": flops,
        "epochs": 1,
        "steps": 1,
        "seconds": seconds,
        "peak_mib": 1.0,
        "version": "0",
        "device": "cpu",
        "host": platform.node(),
        "started": finished,
        "finished": finished,
    }
    store.write(TrialRow(**row | changes), [])


def test_a_plan_of_an_empty_store_counts_everything_and_guesses_no_time(store):
    found = make_plan(load_study("algorithmic"), store)
    assert (found.total, found.left, dict(found.counts)) == (144, 144, {})
    assert found.estimate == UNKNOWN_TIME
    assert {(one.status, one.estimate) for one in found.trials} == {("missing", UNKNOWN_TIME)}
    assert [(one.label, one.trials, one.parameters) for one in found.models] == [
        ("cgru(k=20)", 18, 4_488_548),
        ("sa", 18, 1_603_428),
        ("conv(k=20)", 18, 1_866_084),
        ("persistent_conv(k=20)", 18, 1_868_516),
        ("highway_conv(k=20)", 18, 3_177_316),
        ("sa + conv(k=20)", 18, 2_914_660),
        ("sa + persistent_conv(k=20)", 18, 2_917_092),
        ("sa + highway_conv(k=20)", 18, 4_225_892),
    ]


def test_models_cost_what_the_analysis_says_with_the_largest_vocabulary(store):
    for model in make_plan(load_study("algorithmic"), store).models:
        whole = analyse(parse(model.recipe), d_model=128, length=REFERENCE_TOKENS, vocab=100)
        assert model.parameters == whole.parameters
        assert model.step_flops == 32 * whole.training_flops


@pytest.mark.parametrize(
    "study", [pytest.param("algorithmic", marks=pytest.mark.heavy), SMALL], ids=["algorithmic", "small"]
)
def test_the_most_that_a_trial_trains_is_near_the_sum_over_its_epochs(study):
    for trial in load_study(study).trials[::2]:
        train, task = trial.settings.train, TASKS.get(trial.settings.task.name)
        length, bound, total = train.curriculum.start, max_learnable_length(trial.settings), 0
        for _ in range(train.epochs):
            flops = analysis(trial.settings, task.sequence_length(length)).training_flops
            total += train.steps_per_epoch * train.batch_size * flops
            length += task.length_step if bound is None or length <= bound else 0
        assert max_training_flops(trial.settings) == pytest.approx(total, rel=0.01)


def test_a_trial_grows_by_the_task_s_step_from_its_start():
    by_task = {
        trial.settings.task.name: longest_length(trial.settings) for trial in load_study("algorithmic").trials
    }
    assert by_task == {
        "reverse": 104,
        "sort": 104,
        "addition": 203,
        "multiply": 203,
        "not": 104,
        "remember": 104,
    }


def test_lengths_beyond_the_reach_of_a_recipe_are_predicted(store, golden):
    found = make_plan(load_study("algorithmic"), store).reach_limits
    golden([str(one) for one in found])


@pytest.mark.parametrize(
    "recipe",
    [
        "2 * ({mixer} >> ff(16))",
        "{mixer} >> ff(16)",
        "1 * {mixer}",
    ],
)
def test_a_ceiling_on_one_task_is_one_sentence(store, recipe, golden):
    found = make_plan(load_study(SMALL.replace("2 * ({mixer} >> ff(16))", recipe)), store).reach_limits
    golden([str(one) for one in found])


def test_a_ceiling_reports_the_side_that_sets_it(store):
    text = SMALL.replace('["not", "remember"]', '["reverse", "sort"]').replace("conv(k=5)", "conv(k=6)")
    (found,) = make_plan(load_study(text), store).reach_limits
    assert (found.labels, found.layers, found.left, found.right) == (("conv(k=6)",), 2, 4, None)
    assert found.max_lengths["reverse"] == 5


def test_a_length_that_no_epoch_can_come_to_is_no_ceiling(store):
    assert make_plan(load_study(SMALL.replace("conv(k=5)", "conv(k=69)")), store).reach_limits == ()


def test_stored_trials_do_not_remain(store):
    study = load_study(SMALL)
    for trial, status in zip(study.trials, ("done", "failed", "pruned", "done"), strict=False):
        keep(store, trial, status=status)
    found = make_plan(study, store)
    assert [one.status for one in found.trials] == ["done", "failed", "pruned", "done"] + ["missing"] * 4
    assert (dict(found.counts), found.left) == ({"done": 2, "failed": 1, "pruned": 1}, 5)


def test_trials_of_other_studies_count_when_they_are_the_same(store):
    keep(store, load_study(SMALL.replace('"small"', '"other"')).trials[0])
    assert dict(make_plan(load_study(SMALL), store).counts) == {"done": 1}


def test_a_time_is_measured_where_another_seed_has_run(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=12.0)
    found = make_plan(study, store)
    assert [one.estimate.basis for one in found.trials] == ["measured"] * 2 + ["at most"] * 6
    assert found.trials[1].estimate == TimeEstimate(12.0, "measured")


def test_a_time_is_bounded_by_the_speed_of_the_same_recipe_or_of_all(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=10.0, flops=1e9)
    keep(store, study.trials[6], seconds=30.0, flops=1e9)
    found = make_plan(study, store)
    by_cell = {tuple(one.trial.levels.values())[:2]: one.estimate for one in found.trials}
    assert by_cell["sa", "remember"].seconds == pytest.approx(
        max_training_flops(study.trials[2].settings) / 1e8
    )
    slow = max_training_flops(study.trials[4].settings) / (1e9 / 30)
    assert by_cell["conv(k=5)", "not"].seconds == pytest.approx(slow)
    assert found.estimate.basis == "at most"
    left = sum(one.estimate.seconds for one in found.trials if one.status == "missing")
    assert found.estimate.seconds == pytest.approx(left)
    assert found.max_trial_s == max(one.estimate.seconds for one in found.trials if one.status == "missing")
    assert found.models[0].estimate.seconds == pytest.approx((10 + by_cell["sa", "remember"].seconds) / 2)


def test_a_time_is_expected_by_the_length_that_like_models_reached_anywhere(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=10.0, flops=1e9)
    assert make_plan(study, store).trials[3].estimate.expected is None  # `sa` has run on another task alone
    keep(store, study.trials[2], host="elsewhere", recipe="1 * (sa(heads=2) >> ff(8))")  # reached length 5
    found = make_plan(study, store)
    estimate = found.trials[3].estimate
    ended = load_study(SMALL, ["train.curriculum={ start = 5, end = 6 }"]).trials[3].settings
    share = max_training_flops(ended) / max_training_flops(study.trials[3].settings)
    assert estimate.expected == pytest.approx(estimate.seconds * share)
    assert share < 1
    assert found.estimate.expected < found.estimate.seconds


def test_steps_are_measured_once_if_the_store_has_no_speed(store):
    study, asked = load_study(SMALL), []

    def measure(settings):
        asked.append(len(settings))
        return lambda each: 60.0

    found = make_plan(study, store, measure=measure)
    assert {one.estimate for one in found.trials} == {TimeEstimate(60.0, "at most")}
    assert (asked, found.estimate) == ([4], TimeEstimate(480.0, "at most"))
    keep(store, study.trials[0], seconds=12.0)
    make_plan(study, store, measure=measure)
    assert asked == [4]  # one of each kind: seeds are not measured


def test_the_time_on_a_named_gpu_is_by_a_share_of_its_peak(store, golden):
    found = make_plan(load_study("algorithmic"), store)
    hours = found.flops / (0.3 * 66.9e12) / 3600
    assert 0.5 < hours < 1.5
    words = time_on(found, "h100")
    assert re.match("one H100 .*30 % of its peak, 66.9 TFLOPs", words)
    with pytest.raises(AcceleratorError, match="unknown GPU 'h1000'; nearest: h100"):
        time_on(found, "h1000")
    half = make_plan(load_study("algorithmic", ["train.precision=bf16"]), store)
    with golden.raises(AcceleratorError):
        time_on(half, "v100")


@pytest.mark.parametrize(
    ("batch", "told"),
    [(8, None), (100_000, r"only in \d+ parts of a batch"), (10**8, "not, in whatever parts")],
)
def test_a_trial_that_does_not_fit_into_a_named_gpu_is_told(store, batch, told):
    study = load_study(SMALL, [f"train.batch_size={batch}"])
    words = time_on(make_plan(study, store), "l4")
    found = re.search(r"; sa .* 24.0 GB (.*): .* [\d.]+ [GT]B$", words)
    assert bool(found) == (told is not None)
    assert told is None or re.match(told, found[1])


def test_a_recipe_that_never_ran_takes_the_speed_on_its_task_or_on_all_tasks(store):
    study = load_study(SMALL, ["factors.task=['not', 'remember', 'reverse']"])
    first = {trial.levels["task"]: trial for trial in reversed(study.trials) if trial.levels["mixer"] == "sa"}
    keep(store, first["not"], seconds=10.0, flops=1e9)
    keep(store, first["remember"], seconds=30.0, flops=1e9)
    speeds = {"not": 1e8, "remember": 1e9 / 30, "reverse": 2e9 / 40}
    for never in make_plan(study, store).trials:
        if never.trial.levels["mixer"] != "sa":
            flops, speed = max_training_flops(never.trial.settings), speeds[never.trial.levels["task"]]
            assert never.estimate.seconds == pytest.approx(flops / speed)


def test_the_plan_of_a_part_counts_and_costs_that_part_alone(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=12.0)
    sort = [trial for trial in study.trials if trial.levels["mixer"] == "sa"]
    found = make_plan(study, store, {trial.id for trial in sort})
    assert (found.total, found.subset_size, found.left, dict(found.counts)) == (8, 4, 3, {"done": 1})
    assert [one.trial.id for one in found.trials] == [trial.id for trial in sort]
    assert [(model.label, model.trials) for model in found.models] == [("sa", 4)]
    whole = {one.trial.id: one.estimate for one in make_plan(study, store).trials}
    assert {one.trial.id: one.estimate for one in found.trials} == {each.id: whole[each.id] for each in sort}


def test_times_of_other_machines_and_earlier_devices_do_not_count(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], host="elsewhere")
    assert make_plan(study, store).estimate == UNKNOWN_TIME
    keep(store, study.trials[2], seconds=7.0, device="gpu", minutes=1)
    keep(store, study.trials[4], seconds=9.0, device="cpu", minutes=0)
    found = make_plan(study, store)
    assert found.trials[3].estimate == TimeEstimate(7.0, "measured")
    assert found.trials[5].estimate.basis == "at most"


@pytest.mark.skipif(any(Path("/dev").glob("nvidia[0-9]*")), reason="this machine has a GPU")
def test_times_of_a_gpu_do_not_count_on_a_machine_without_one(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=100.0)
    keep(store, study.trials[2], seconds=1.0, device="NVIDIA H100", cuda_version="13.0", minutes=1)
    found = make_plan(study, store)
    assert found.trials[1].estimate == TimeEstimate(100.0, "measured")
    assert found.trials[3].estimate.basis == "at most"


def test_a_device_that_was_used_otherwise_is_the_same_device(store):
    study = load_study(SMALL)
    keep(store, study.trials[0], seconds=4.0, minutes=0)
    keep(
        store,
        study.trials[2],
        seconds=6.0,
        device="cpu, batches in 4 parts",
        minutes=1,
    )
    times = make_plan(study, store).trials
    assert [times[place].estimate for place in (0, 2)] == [
        TimeEstimate(4.0, "measured"),
        TimeEstimate(6.0, "measured"),
    ]


def test_stored_trials_of_added_seeds_are_told_beside_those_of_the_file(store):
    study = load_study(SMALL, ["study.max_seeds=3"])
    assert "further seeds" not in study_status(study, store).summary()
    later = [trial for trial in study.with_later_seeds().cells if trial.seed == 2]
    keep(store, later[0])
    keep(store, later[1], status="failed")
    status = study_status(study, store)
    assert status.summary() == "0 of 8 trials done · 8 left · further seeds: 1 done, 1 failed"
    assert set(status.added) == {trial.id for trial in later[:2]}


def test_a_study_that_is_done_has_nothing_left(store):
    study = load_study(SMALL)
    for trial in study.trials:
        keep(store, trial)
    found = make_plan(study, store)
    assert (found.left, found.estimate, found.max_trial_s) == (0, TimeEstimate(0.0, "measured"), 0.0)


def test_done_trials_without_their_weights_remain(store, golden):
    study = load_study(
        SMALL.replace('title = "A small study"', 'title = "A small study"\nkeep_weights = true')
    )
    one, *others = study.trials
    for trial in [one, *others[:4]]:
        keep(store, trial)
    keep(store, others[4], status="failed")
    found = store.files.weights_file(one.id)
    found.parent.mkdir(parents=True)
    found.touch()
    assert (make_plan(study, store).left, make_plan(study, store).num_missing_weights) == (6, 4)
    golden(study_status(study, store).summary())
    without = load_study(SMALL)
    assert (make_plan(without, store).left, make_plan(without, store).num_missing_weights) == (2, 0)


def test_models_are_called_by_the_levels_in_which_they_differ(store):
    two = SMALL.replace("d_model = 16", 'd_model = "{width}"').replace(
        "[factors]", "[factors]\nwidth = [8, 16]"
    )
    assert [one.label for one in make_plan(load_study(two), store).models] == [
        "width=8, mixer=sa",
        "width=8, mixer=conv(k=5)",
        "width=16, mixer=sa",
        "width=16, mixer=conv(k=5)",
    ]
    one = SMALL.replace("{mixer}", "sa").replace('mixer = ["sa", "conv(k=5)"]\n', "")
    assert [one.label for one in make_plan(load_study(one), store).models] == ["2 * (sa >> ff(16))"]
    assert [one.trials for one in make_plan(load_study(one), store).models] == [4]


@pytest.mark.parametrize(
    ("key", "levels", "more"),
    [("position", ["timing", "learned", "none"], {"timing": 0, "learned": 2048 * 16}),
     ("norm_kind", ["layer_norm", "rms_norm"], {"layer_norm": 0, "rms_norm": -5 * 16})],
)  # fmt: skip
def test_models_that_learn_other_positions_or_norms_are_distinguished(store, key, levels, more):
    text = SMALL.replace("{mixer}", "sa").replace('mixer = ["sa", "conv(k=5)"]', f"{key} = {levels}")
    models = make_plan(load_study(text, [f'model.{key}="{{{key}}}"']), store).models
    assert {one.label: one.parameters - models[0].parameters for one in models} == more


def test_a_model_has_the_costs_of_its_costliest_trial(store):
    text = SMALL.replace("[factors]\n", "[factors]\nbatch = [8, 32]\n")
    models = make_plan(load_study(text, ["train.batch_size='{batch}'"]), store).models
    small = make_plan(load_study(SMALL, ["train.batch_size=8"]), store).models
    assert [(one.label, one.trials) for one in models] == [("sa", 8), ("conv(k=5)", 8)]
    assert [one.step_flops for one in models] == [4 * one.step_flops for one in small]
    assert models[0].memory > small[0].memory
    assert [one.memory_at for one in models] == ["batch=32", "batch=32"]


def test_models_named_by_several_levels_are_listed_with_semicolons(store):
    text = SMALL.replace("ff(16)", "ff({filter})").replace("[factors]\n", "[factors]\nfilter = [8, 16]\n")
    (limit,) = make_plan(load_study(text), store).reach_limits
    assert str(limit).startswith("filter=8, mixer=conv(k=5); filter=16, mixer=conv(k=5) on remember: ")


def test_a_search_is_planned_by_the_ends_of_its_dimensions(store, golden):
    study = load_study(SEARCH)
    found = make_plan(study, store)
    assert (found.total, found.left, found.trials, found.estimate) == (14, 14, (), UNKNOWN_TIME)
    assert [(one.label, one.recipe) for one in found.models] == [
        ("k=3", "2 * (conv(k=3) >> ff(16))"),
        ("k=9", "2 * (conv(k=9) >> ff(16))"),
    ]
    golden([str(one) for one in found.reach_limits])


def test_a_search_within_limits_is_planned_by_models_that_they_allow(store):
    plan = make_plan(load_study(SEARCH, ["study.limits.parameters='<= 5600'"]), store)
    assert [one.label for one in plan.models] == ["k=3", "k=7"]
    few = load_study(SEARCH, ["study.limits.parameters='<= 5600'", "search.trials=2"])
    assert "% of 200 random points are within the limits" in " ".join(str(make_plan(few, store)).split())


def test_a_plan_says_that_a_search_looks_for_worse_values(store):
    for direction, told in (("max", False), ("min", True)):
        plan = make_plan(load_study(SEARCH, [f"search.direction={direction}"]), store)
        assert ("a lower one is usually worse" in " ".join(str(plan).split())) is told


def test_a_model_of_single_changes_is_named_by_its_change(store):
    text = study_text(
        study={"design": "one_at_a_time", "ablate": "parts"},
        model={"recipe": "conv(k={k}) >> ff({width})"},
        factors={"k": [7, 3], "width": [8, 16], "mixer": None, "task": ["sort"]},
    )
    plan = make_plan(load_study(text), store)
    assert [one.label for one in plan.models] == [
        "baseline",
        "− conv(k=7)",
        "− ff(8)",
        "k = 3",
        "width = 16",
    ]


def test_the_ends_of_a_conditional_search_show_only_what_they_take(store):
    text = SEARCH.replace("conv(k={k})", "choice(sa, conv(k={k}))")
    assert [(one.label, one.recipe) for one in make_plan(load_study(text), store).models] == [
        ("sa", "2 * (sa >> ff(16))"),
        ("k=9, choice=conv(k=9)", "2 * (conv(k=9) >> ff(16))"),
    ]


def test_a_search_is_timed_by_its_own_trials(store):
    study = load_study(SEARCH, ["search.scheduler=median"])
    for k, seconds in ((4, 10.0), (5, 20.0)):
        keep(store, study.search.trial_of({"k": k}), seconds=seconds)
    keep(store, study.search.trial_of({"k": 6}), status="pruned", seconds=1.0)
    found = make_plan(study, store)
    assert (found.left, dict(found.counts)) == (11, {"done": 2, "pruned": 1})
    assert found.estimate == TimeEstimate(11 * 15.0, "measured")


def test_studies_load_neither_torch_nor_ray():
    script = (
        "import sys\n"
        "from activemem.studies.plan import make_plan\n"
        "from activemem.studies.study import load_study\n"
        "assert load_study('algorithmic').trials\n"
        "print(sorted({'torch', 'ray', 'optuna'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_levels_that_only_differ_in_their_spelling_are_named(store):
    spelt = SMALL.replace('"conv(k=5)"', '"conv(k=5)", "conv(k=5, act=relu)"')
    text = " ".join(str(make_plan(load_study(spelt), store)).split())
    assert "3 mixers × 2 tasks × 2 seeds = 8 distinct trials" in text
    shared = "mixer=conv(k=5) and mixer=conv(k=5, act=relu)"
    assert f"share their trials, as {shared}" in text
    assert "share their trials" not in str(make_plan(load_study(SMALL), store))
