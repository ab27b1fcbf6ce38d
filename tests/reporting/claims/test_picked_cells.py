"""Claims about cells whose learning rate is the best on the dev split."""

import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting import Verdict
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.terminal import measured_sentences
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage.rows import trial_frame

from ...studies.claims.factories import make_outcomes, study_with_claims
from ...study_texts import study_text
from ..conftest import made_row

TEXT = study_text(
    task={"name": "reverse"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}},
    factors={"mixer": ["sa", "conv(k=3)", "gru"], "lr": [1e-3, 3e-3], "seed": [0, 1, 2]},
)
CLAIM = "accuracy[mixer=sa] > accuracy[mixer=conv(k=3)]"
SA = {("sa", 1e-3): [(0.5, 30), (0.6, 31), (0.7, 32)], ("sa", 3e-3): [(0.4, 90), (0.5, 91), (0.6, 92)]}
CONV = {
    ("conv(k=3)", 1e-3): [(0.2, 80), (0.3, 81), (0.4, 82)],
    ("conv(k=3)", 3e-3): [(0.3, 20), (0.4, 21), (0.5, 23)],
}
"""The length that picks the rate, and the accuracy in percent, of each seed."""


def study(*holds, over="lr", pick_by="max_length", text=TEXT, **keys):
    """Return the study with these claims, whose rate is picked by the length."""
    return study_with_claims(*holds, text=text, over=over, pick_by=pick_by, **keys)


def outcomes(of, *cells):
    """Return the outcomes of these cells; a text is the reason of a failure."""
    found = {
        key: [
            end if isinstance(end, str) else {"max_length": 100 * end[0], "accuracy": end[1] / 100}
            for end in ends
        ]
        for each in cells
        for key, ends in each.items()
    }
    return make_outcomes(of, found, by=("mixer", "lr"))


def key_of(trial):
    """Return the mixer and the rate of a trial."""
    return trial.levels["mixer"], trial.levels["lr"]


def test_levels_that_are_not_picked_change_no_interval():
    of = study("accuracy[mixer=sa] > accuracy[mixer=conv(k=3)] + 0.05")
    calm = {
        ("sa", 3e-3): [(0.4, 90), (0.5, 90), (0.6, 91)],
        ("conv(k=3)", 1e-3): [(0.2, 8), (0.3, 8), (0.4, 9)],
    }
    (one,), (other,) = (check_claims(of, outcomes(of, {**SA, **CONV}, each)) for each in ({}, calm))
    assert (one.deciding.interval, one.deciding.degrees) == (other.deciding.interval, other.deciding.degrees)
    assert one.deciding.degrees == 2


def test_a_cell_has_the_level_that_is_best_by_the_other_metric():
    of = study(CLAIM)
    (one,) = check_claims(of, outcomes(of, SA, CONV))
    found = one.deciding
    assert one.verdict is Verdict.CONFIRMED
    assert (found.n, found.gaps) == (3, ())
    assert found.effect == pytest.approx((0.10 + 0.10 + 0.09) / 3)
    assert found.text == "accuracy[mixer=sa, lr=0.001] > accuracy[mixer=conv(k=3), lr=0.003]"


def test_tables_figures_and_claims_say_that_the_picking_metric_biases_values():
    keys = {"x": "mixer", "value": "SHOWN", "over": "lr"}
    text = study_text(
        task={"name": "word_problem", "lengths": [8, 16], "test_lengths": [16]},
        train={"optimizer": {"name": "adam", "lr": "{lr}"}, "curriculum": None},
        factors={"mixer": ["sa", "gru"], "task": None, "lr": [1e-3, 3e-3], "seed": [0, 1]},
        table=[{"name": "t", "rows": "mixer", "value": "SHOWN", "over": "lr", "pick_by": "PICK"}],
        curve=[{"name": "c", "kind": "bar", **keys, "pick_by": "PICK"}],
    )
    by_test = "The test split chose lr (by {}), so the values are biased."
    for shown, pick_by, sentence in (
        ("test_accuracy", "test_loss", by_test),
        ("test_accuracy", "test_accuracy", by_test),
        ("dev_accuracy", "dev_accuracy", "{} itself chose lr, so its values are biased."),
        ("test_accuracy", "dev_accuracy", ""),
    ):
        of = study(
            f"{shown}[mixer=sa] > {shown}[mixer=gru]",
            text=text.replace("PICK", pick_by).replace("SHOWN", shown),
            pick_by=pick_by,
        )
        metrics = {"test_loss": 1.0, "test_accuracy": 0.5, "dev_accuracy": 0.5}
        rows = pl.concat([trial_frame(made_row(trial, metrics, 1)) for trial in of.trials])
        told = (
            build_table(of, of.tables[0], rows).sentences,
            build_curve(of, of.curves[0], rows).notes,
            measured_sentences(of),
        )
        for each in told:
            biased = [line for line in each if line.endswith("biased.")]
            assert biased == ([sentence.format(pick_by)] if sentence else [])


def test_tables_and_figures_tell_of_the_cells_that_picked_an_end_of_a_grid_of_numbers():
    best = {"sa": 3e-3, "conv(k=3)": 1e-2, "gru": 1e-2, "ff(8)": 1e-3}
    keys = {"value": "accuracy", "over": ["lr", "norm"], "pick_by": "loss"}
    of = load_study(
        study_text(
            model={"recipe": "{mixer}", "norm": "{norm}"},
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={
                "mixer": list(best),
                "task": ["reverse"],
                "lr": [1e-2, 1e-3, 3e-3],
                "norm": ["pre", "post"],
                "seed": [0, 1],
            },
            table=[
                {"name": "rows", "rows": "mixer", **keys},
                {"name": "columns", "rows": "mixer", "columns": "task", **keys},
            ],
            curve=[{"name": "bars", "kind": "bar", "x": "mixer", **keys}],
        )
    )
    losses = {trial.id: float(trial.levels["lr"] != best[trial.levels["mixer"]]) for trial in of.trials}
    ends = [made_row(trial, {"loss": losses[trial.id], "accuracy": 0.5}, 1) for trial in of.trials]
    rows = pl.concat(map(trial_frame, ends))
    for table, words in zip(
        of.tables,
        (
            "lr = 0.01, the highest, for conv(k=3), gru; lr = 0.001, the lowest, for ff(8)",
            "lr = 0.01, the highest, for 2 of 4 cells; lr = 0.001, the lowest, for 1 of 4 cells",
        ),
        strict=True,
    ):
        sentence = f"Picked at an end of its levels: {words}. Better ones may lie beyond."
        assert sentence in build_table(of, table, rows).sentences
    assert sentence in build_curve(of, of.curves[0], rows).notes


@pytest.mark.parametrize(
    ("levels", "best", "told"),
    [
        ([0.0, 0.25, 0.5], 0.0, []),  # nothing is below it
        ([0.0, 0.25, 0.5], 0.5, ["0.5, the highest"]),
        ([0.1, 0.25, 0.5], 0.1, ["0.1, the lowest"]),
    ],
)
def test_a_lowest_level_0_is_not_said_to_be_an_end(levels, best, told):
    of = load_study(
        study_text(
            model={"dropout": "{dropout}"},
            factors={"mixer": ["sa", "gru"], "task": ["reverse"], "dropout": levels, "seed": [0]},
            table=[{"name": "t", "rows": "mixer", "value": "accuracy", "over": "dropout", "pick_by": "loss"}],
        )
    )
    losses = {trial.id: float(trial.levels["dropout"] != best) for trial in of.trials}
    ends = [made_row(trial, {"loss": losses[trial.id], "accuracy": 0.5}, 1) for trial in of.trials]
    made = build_table(of, of.tables[0], pl.concat(map(trial_frame, ends)))
    assert [line for line in made.sentences if line.startswith("Picked at")] == [
        f"Picked at an end of its levels: dropout = {end}, for sa, gru. Better ones may lie beyond."
        for end in told
    ]


def test_an_end_that_ties_with_a_level_between_the_ends_is_not_said_to_be_one():
    keys = {"value": "accuracy", "over": "lr", "pick_by": "loss"}
    of = load_study(
        study_text(
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={
                "mixer": ["sa", "gru"],
                "task": ["reverse"],
                "lr": [1e-3, 3e-3, 1e-2],
                "seed": [0, 1],
            },
            table=[{"name": "t", "rows": "mixer", **keys}],
            curve=[{"name": "c", "kind": "bar", "x": "mixer", **keys}],
        )
    )
    worse = {("sa", 1e-2), ("gru", 1e-2), ("gru", 3e-3)}
    losses = {trial.id: float(key_of(trial) in worse) for trial in of.trials}
    ends = [made_row(trial, {"loss": losses[trial.id], "accuracy": 0.5}, 1) for trial in of.trials]
    rows = pl.concat(map(trial_frame, ends))
    sentence = "Picked at an end of its levels: lr = 0.001, the lowest, for {}. Better ones may lie beyond."
    assert sentence.format("gru") in build_table(of, of.tables[0], rows).sentences
    assert sentence.format("1 of 2 cells") in build_curve(of, of.curves[0], rows).notes


def test_tables_and_figures_say_which_cells_had_fewer_levels_to_pick_from():
    keys = {"value": "accuracy", "over": "lr", "pick_by": "loss"}
    of = load_study(
        study_text(
            study={"design": "zip"},
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={
                "mixer": ["sa", "sa", "gru"],
                "task": ["sort"] * 3,
                "lr": [1e-3, 3e-3, 1e-2],
                "seed": [0],
            },
            table=[{"name": "t", "rows": "mixer", **keys}],
            curve=[{"name": "c", "kind": "bar", "x": "mixer", **keys}],
        )
    )
    rows = pl.concat([trial_frame(made_row(trial, {"loss": 1.0, "accuracy": 0.5}, 1)) for trial in of.trials])
    caption = build_table(of, of.tables[0], rows).sentences
    assert "each cell at its best of up to 2 levels of lr by" in caption[0]
    assert "Cells had different tuning budgets: 2 levels for sa; 1 level for gru." in caption
    notes = build_curve(of, of.curves[0], rows).notes
    assert "At the best of 1 to 2 levels of lr by loss: sa 0.001; gru 0.01." in notes


def test_a_front_over_the_picking_metric_says_that_its_values_are_biased():
    curve = {"kind": "pareto", "x": "loss", "value": "accuracy", "over": "lr", "pick_by": "loss"}
    of = load_study(
        study_text(
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors={"mixer": ["sa", "gru"], "task": ["reverse"], "lr": [1e-3, 3e-3], "seed": [0]},
            curve=[{"name": "c", **curve}],
        )
    )
    rows = pl.concat([trial_frame(made_row(trial, {"loss": 1.0, "accuracy": 0.5}, 1)) for trial in of.trials])
    assert "loss itself chose lr, so its values are biased." in build_curve(of, of.curves[0], rows).notes


def test_the_first_of_tied_levels_is_taken_and_tables_figures_and_claims_say_so():
    keys = 'value = "accuracy"\nover = "lr"\npick_by = "max_length"\n'
    table = f'\n[[table]]\nname = "t"\nrows = "mixer"\n{keys}'
    of = study(CLAIM, text=f'{TEXT}{table}\n[[curve]]\nname = "c"\nkind = "bar"\nx = "mixer"\n{keys}')
    lengths = {("sa", 1e-3): (50, 60, 70), ("sa", 3e-3): (60, 60, 60)}  # means tie, not each value
    rows = pl.concat(
        trial_frame(made_row(trial, {"max_length": found, "accuracy": 0.5 + trial.levels["lr"]}, 1))
        for trial in of.trials
        for found in [lengths.get(key_of(trial), (trial.levels["lr"],) * 3)[trial.levels["seed"]]]
    )
    assert [note.text for note in build_table(of, of.tables[0], rows).footnotes][:2] == [
        "lr 0.001",
        "2 of 2 levels of lr tie: the first of the file was taken",
    ]
    tie = "2 levels tie in 1 of 3 cells: the first of the file was taken."
    assert tie in build_curve(of, of.curves[0], rows).notes
    (one,) = check_claims(of, rows)
    assert one.deciding.text.startswith("accuracy[mixer=sa, lr=0.001]")
    assert [note.what for note in one.deciding.notes] == [
        "lr=0.001 is its best by max_length; 2 levels tie, and the first of the file was taken",
        "lr=0.003 is its best by max_length",
    ]


def test_a_claim_tells_of_no_pick_of_another_claim():
    of = study(CLAIM, "accuracy[mixer=sa, lr=0.001] > accuracy[mixer=conv(k=3), lr=0.003]")
    picked, named = check_claims(of, outcomes(of, SA, CONV))
    assert picked.deciding.effect == named.deciding.effect
    assert [note.what for note in picked.deciding.notes] == [
        "lr=0.001 is its best by max_length",
        "lr=0.003 is its best by max_length",
    ]
    assert named.deciding.notes == ()


def test_no_level_is_best_where_all_have_diverged():
    of = study(CLAIM)
    lost = [trial.id for trial in of.trials if trial.levels["mixer"] == "sa"]
    rose = pl.when(pl.col("trial").is_in(lost)).then(pl.lit("rose from 0.3 to 0.4")).alias("diverged")
    (one,) = check_claims(of, outcomes(of, SA, CONV).with_columns(rose))
    assert one.deciding.notes[0].what == (
        "no level has a max_length to pick by; lr=0.001, the first of the file, is compared"
    )


def test_lower_values_are_better_where_the_metric_says_so():
    of = study("accuracy[mixer=sa] > accuracy[mixer=conv(k=3)]", pick_by="loss")
    found = {
        key: [{"loss": each[0], "accuracy": each[1] / 100} for each in ends]
        for key, ends in (SA | CONV).items()
    }
    (one,) = check_claims(of, make_outcomes(of, found, by=("mixer", "lr")))
    assert one.deciding.text == "accuracy[mixer=sa, lr=0.003] > accuracy[mixer=conv(k=3), lr=0.001]"


def test_the_verdict_is_that_of_the_claim_with_the_picked_levels_named():
    picked, named = (
        study(CLAIM),
        study_with_claims("accuracy[mixer=sa, lr=0.001] > accuracy[mixer=conv(k=3), lr=0.003]", text=TEXT),
    )
    (one,), (other,) = (check_claims(each, outcomes(each, SA, CONV)) for each in (picked, named))
    assert (one.deciding.interval, one.deciding.p) == (other.deciding.interval, other.deciding.p)


def test_nothing_is_picked_before_all_levels_have_ended():
    of = study(CLAIM)
    begun = {("conv(k=3)", 3e-3): CONV["conv(k=3)", 3e-3][:2]}
    (one,) = check_claims(of, outcomes(of, SA, CONV | begun))
    assert one.verdict is Verdict.UNDECIDED
    assert one.deciding.text == "accuracy[mixer=sa, lr=0.001] > accuracy[mixer=conv(k=3)]"
    assert [(gap.where, gap.what) for gap in one.deciding.gaps] == [
        ("mixer=conv(k=3), lr=0.003", "1 of 3 seeds not run")
    ]


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("[study]", "[study]\nmax_seeds = 8")])
def test_a_level_with_a_failed_seed_is_not_picked(text):
    of = study(CLAIM, text=text).with_later_seeds()
    failed = {("conv(k=3)", 3e-3): ["failed: boom", *CONV["conv(k=3)", 3e-3][1:]]}
    (one,) = check_claims(of, outcomes(of, SA, CONV | failed))
    assert one.deciding.text == "accuracy[mixer=sa, lr=0.001] > accuracy[mixer=conv(k=3), lr=0.001]"


@pytest.mark.parametrize(
    ("strayed", "picked"),
    [
        ([("sa", 1e-3)], 3e-3),
        ([("sa", 1e-3), ("sa", 3e-3)], 1e-3),  # the mean of the other seeds decides
        ([("sa", 3e-3)], 1e-3),
    ],
)
def test_a_level_with_fewer_diverged_seeds_is_picked_as_in_tables(strayed, picked):
    of = study(CLAIM, pick_by="accuracy")
    sa = {key: [(0.5, 30 + 10 * (key[1] < 2e-3))] * 3 for key in SA}
    ends = outcomes(of, sa, CONV)
    lost = [trial.id for trial in of.trials if trial.levels["seed"] == 2 and key_of(trial) in strayed]
    rose = pl.when(pl.col("trial").is_in(lost)).then(pl.lit("rose from 0.3 to 0.4")).alias("diverged")
    (one,) = check_claims(of, ends.with_columns(rose))
    assert one.deciding.text.startswith(f"accuracy[mixer=sa, lr={picked:g}]")


def test_picked_cells_stand_in_best_min_and_loops_and_a_named_level_is_not_picked():
    of = study(
        "best(accuracy) is conv(k=3)",
        "all(accuracy[mixer=m] > accuracy[mixer=m, lr=0.001] - 0.2 for m in mixer)",
        "max(accuracy[mixer=sa], accuracy[mixer=gru]) > accuracy[mixer=conv(k=3)]",
    )
    gru = {("gru", rate): [(0.1, 10), (0.1, 11), (0.1, 12)] for rate in (1e-3, 3e-3)}
    best, loop, largest = check_claims(of, outcomes(of, SA, CONV, gru))
    assert best.verdict is Verdict.REFUTED
    assert [each.text for each in loop.findings][1] == (
        "accuracy[mixer=conv(k=3), lr=0.003] > accuracy[mixer=conv(k=3), lr=0.001] - 0.2"
    )
    assert largest.deciding.effect == pytest.approx((0.10 + 0.10 + 0.09) / 3)


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"pick_by": "nothing"}, "unknown metric 'nothing'"),
        ({"pick_by": "flops"}, "expected a metric for which higher or lower is better"),
        ({"over": "rate"}, "unknown factor 'rate'"),
        ({"over": "seed"}, "remove the seed"),
        ({"over": []}, "pick_by needs factors to choose from"),
        ({"each": "lr"}, "expected another factor than that of each"),
    ],
)
def test_faults_of_the_two_keys_name_the_next_step(keys, fault):
    with pytest.raises(StudyError, match=fault):
        study(CLAIM, **keys)
