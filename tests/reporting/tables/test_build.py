"""Tables of stored results: mean, spread, best, and missing values."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from activemem import Study, StudyResults, load_study
from activemem.cli.views.status import format_best_points
from activemem.reporting import Table, TableError, Verdict
from activemem.reporting.claims.check import check_claims
from activemem.reporting.kinds import build_table
from activemem.reporting.statistics.estimates import Estimate
from activemem.reporting.tables.table import Cell, CellStatus, Footnote, PublishedLine
from activemem.storage import Store
from activemem.storage.rows import trial_frame
from activemem.studies import find_points
from activemem.studies.catalog.published import PublishedNumber
from activemem.studies.presentation.table_keys import CellsTable

from ...golden import GoldenTexts
from ...study_texts import study_text
from ..conftest import made_row


def cell_of(made: Table, row: str, column: str) -> Cell:
    return made.cells[made.rows.index(row)][made.columns.index(column)]


@pytest.fixture
def made(everything: Study, rows: pl.DataFrame) -> Table:
    return build_table(everything, everything.tables[0], rows, published=True)


def spec(**changes: str) -> CellsTable:
    keys = {"name": "table4", "rows": "mixer", "columns": "task", "value": "max_length"}
    return CellsTable(**(keys | changes))


def test_rows_and_columns_are_in_the_order_of_the_study_file(made: Table) -> None:
    assert made.rows == ("sa", "conv(k=20)", "persistent_conv(k=20) + sa", "conv(k=3) + conv(k=5)")
    assert made.columns == ("sort", "reverse", "copy")
    assert made.corner == "mixer"


def test_a_cell_has_mean_sample_deviation_and_count_of_its_seeds(made: Table) -> None:
    assert cell_of(made, "conv(k=20)", "sort") == Cell(
        status=CellStatus.DONE,
        estimate=Estimate(value=30.0, low=20.0, high=40.0, spread=10.0, n=3),
        text="30.0",
        spread="10.0",
        best=True,
        published_lines=(
            PublishedLine(
                number=PublishedNumber(value=20.7, text="20.7", unit="tokens", n=3),
                text="20.7",
            ),
        ),
    )


def test_the_best_of_a_column_is_bold_and_on_request_all_that_print_like_it(
    everything: Study, rows: pl.DataFrame
) -> None:
    def bold(**keys: object) -> list[tuple[str, str]]:
        made = build_table(everything, spec(**keys), rows)
        places = itertools.product(made.rows, made.columns)
        return [place for place in places if cell_of(made, *place).best]

    # the best of `reverse` has one seed, and sa on `copy` is less good than it is printed
    assert bold() == [("conv(k=20)", "sort"), ("conv(k=20)", "copy")]
    assert bold(bold="best") == [
        ("sa", "copy"),
        ("conv(k=20)", "sort"),
        ("conv(k=20)", "reverse"),
        ("conv(k=20)", "copy"),
    ]


def test_the_best_loss_is_the_lowest(everything: Study, rows: pl.DataFrame, golden: GoldenTexts) -> None:
    made = build_table(everything, spec(value="loss"), rows)
    assert [cell_of(made, row, "sort").best for row in made.rows] == [False, True, False, False]
    golden(made.remarks)


def test_a_value_alone_in_its_column_is_not_called_the_best(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    alone = [trial.id for trial in everything.trials if tuple(trial.levels.values())[:2] == ("sa", "sort")]
    made = build_table(everything, spec(), rows.filter(pl.col("trial").is_in(alone)))
    assert not any(cell.best for row in made.cells for cell in row)
    golden(made.sentences)


@pytest.mark.parametrize(
    ("row", "column", "status", "text", "notes"),
    [
        (
            "sa",
            "reverse",
            CellStatus.PARTIAL,
            "1 of 3 failed (42.2)",
            ["1 of 3 seeds failed: disk is full at epoch 8"],
        ),
        ("conv(k=20)", "reverse", CellStatus.PARTIAL, "19.0", ["2 of 3 seeds not run"]),
        (
            "persistent_conv(k=20) + sa",
            "sort",
            CellStatus.FAILED,
            "failed",
            ["3 of 3 seeds failed: 90 % of <memory> & more _x_ | $y^2 {#1} ~ \\"],
        ),
        (
            "persistent_conv(k=20) + sa",
            "reverse",
            CellStatus.PRUNED,
            "pruned",
            ["3 of 3 seeds pruned: behind the others at epoch 1"],
        ),
        (
            "persistent_conv(k=20) + sa",
            "copy",
            CellStatus.PARTIAL,
            "1 of 3 failed (5.0)",
            ["1 of 3 seeds failed: disk is full at epoch 8", "1 of 3 seeds not run"],
        ),
        (
            "conv(k=3) + conv(k=5)",
            "reverse",
            CellStatus.PARTIAL,
            "7.0 ± 0.0",
            ["1 of 3 seeds ended without a finite max_length"],
        ),
        ("conv(k=3) + conv(k=5)", "copy", CellStatus.MISSING, "–", []),
    ],
)
def test_trials_that_are_not_in_a_mean_are_reported(
    made: Table, row: str, column: str, status: CellStatus, text: str, notes: list[str]
) -> None:
    cell = cell_of(made, row, column)
    sentences = {note.mark: note.text for note in made.footnotes}
    assert (cell.status, cell.full_text, [sentences[mark] for mark in cell.marks]) == (status, text, notes)


def test_footnotes_are_lettered_in_reading_order_and_shared(made: Table) -> None:
    assert [note.mark for note in made.footnotes] == ["a", "b", "c", "d", "e", "f", "≈"]
    assert made.footnotes[0] == Footnote(mark="a", text="1 of 3 seeds failed: disk is full at epoch 8")
    assert cell_of(made, "persistent_conv(k=20) + sa", "copy").marks == ("a", "e")


def test_the_caption_says_what_the_signs_mean(made: Table, golden: GoldenTexts) -> None:
    golden(made.sentences)


def test_a_caption_of_ones_own_takes_the_place_of_the_metrics(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    made = build_table(everything, spec(caption="How far they come.\n"), rows)
    golden(made.caption)


def test_published_numbers_are_shown_even_where_we_have_no_result(made: Table) -> None:
    printed = {
        (row, column): cell.published.text
        for row, cells in zip(made.rows, made.cells, strict=True)
        for column, cell in zip(made.columns, cells, strict=True)
        if cell.published
    }
    assert printed == {
        ("sa", "sort"): "14.0",
        ("sa", "reverse"): "41.0",
        ("conv(k=20)", "sort"): "20.7",
        ("conv(k=20)", "reverse"): "17.7",
        ("persistent_conv(k=20) + sa", "sort"): "23.3",
        ("persistent_conv(k=20) + sa", "reverse"): "43.7",
    }


def test_published_numbers_are_shown_only_on_request(everything: Study, rows: pl.DataFrame) -> None:
    made = build_table(everything, spec(), rows)
    assert all(cell.published is None for row in made.cells for cell in row)
    assert not any(sentence.startswith("Small") for sentence in made.sentences)


def test_costs_of_untrained_models_are_counted_unless_their_lengths_grow(
    everything: Study, rows: pl.DataFrame
) -> None:
    made = build_table(
        everything, spec(columns=None, select={"task": "sort"}, value=["parameters", "flops"]), rows.clear()
    )
    statuses = {(parameters.status, flops.status) for parameters, flops in made.cells}
    assert statuses == {(CellStatus.DONE, CellStatus.MISSING)}


def test_a_table_that_picks_levels_counts_costs_that_untrained_levels_share() -> None:
    factors = {"mixer": ["gru", "lstm"], "lr": [0.1, 0.01], "width": [8, 16], "task": None}
    keys = {"rows": "mixer", "value": ["loss", "parameters"]}
    narrow, slow = {"select": {"width": 8}, "over": "lr"}, {"select": {"lr": 0.01}, "over": "width"}
    study = load_study(
        study_text(
            model={"recipe": "{mixer} >> ff({width})"},
            task={"name": "copy"},
            train={"optimizer": {"name": "adam", "lr": "{lr}"}},
            factors=factors,
            table=[
                {"name": "mean", **keys, **narrow},
                {"name": "shared", **keys, **narrow, "pick_by": "loss"},
                {"name": "differing", **keys, **slow, "pick_by": "loss"},
            ],
        )
    )
    untrained = trial_frame(made_row(study.trials[0], {"loss": 1.0}, 0)).clear()
    mean, shared, differing = (
        [[cell.full_text for cell in row] for row in build_table(study, each, untrained).cells]
        for each in study.tables
    )
    assert shared == mean == [["–", "2,308"], ["–", "2,436"]]
    assert differing == [["–", "–"]] * 2


def test_published_may_name_another_table_of_the_paper(everything: Study, rows: pl.DataFrame) -> None:
    made = build_table(everything, spec(published="table1"), rows, published=True)
    assert all(cell.published is None for row in made.cells for cell in row)  # its column is a loss


def test_one_seed_has_neither_deviation_nor_a_count_of_seeds(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    one = load_study(everything.document.text, overrides=("factors.seed=[0]",))
    made = build_table(one, spec(), rows)
    golden(made.caption)
    assert [cell.full_text for cell in made.cells[0]] == ["14.0", "41.0", "104.0"]
    assert made.footnotes[1] == Footnote(mark="b", text="pruned: behind the others at epoch 1")


@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_a_table_by_seed_shows_the_value_of_each_trial(everything: Study, rows: pl.DataFrame, axis: str):
    other = {"rows": "columns", "columns": "rows"}[axis]
    keys = {axis: "seed", other: "mixer", "select": {"task": "sort"}}
    made = build_table(everything, spec(**keys), rows)
    at = (made.columns if axis == "rows" else made.rows).index("conv(k=20)")
    cells = [row[at] for row in made.cells] if axis == "rows" else list(made.cells[at])
    assert sorted(cell.text for cell in cells) == ["20.0", "30.0", "40.0"]
    assert ": one seed, " in made.caption


def test_provenance_is_reported_by_the_rows_alone(everything: Study, rows: pl.DataFrame) -> None:
    assert (
        build_table(everything, spec(), rows).provenance
        == "27 of 36 trials · activemem 0.1.0 (a1b2c3d) · H200 & 2 others · 2026-11-28"
    )


def test_provenance_reports_changed_code_and_torch(everything: Study, rows: pl.DataFrame) -> None:
    first = pl.int_range(pl.len()) == 1
    known = rows.with_columns(
        commit=pl.when(first).then(pl.lit("5d02964+a1b2c3d4")).otherwise("commit"),
        torch_version=pl.when(first).then(pl.lit("2.13.0+cu130")),
        cuda_version=pl.when(first).then(pl.lit("13.0")),
    )
    assert build_table(everything, spec(), known).provenance == (
        "27 of 36 trials · activemem 0.1.0 (5d02964+a1b2c3d4, a1b2c3d) · torch 2.13.0+cu130 with CUDA 13.0 · "
        "H200 & 2 others · 2026-11-28"
    )
    none = rows.with_columns(commit=pl.when(~first).then("commit"))
    assert "activemem 0.1.0 (a1b2c3d, no commit) · " in build_table(everything, spec(), none).provenance


def test_provenance_leaves_out_devices_that_are_not_known(everything: Study, rows: pl.DataFrame) -> None:
    pruned = pl.int_range(pl.len()) < 2  # before they trained
    some = rows.with_columns(device=pl.when(pruned).then(pl.lit("")).otherwise("device"))
    known = build_table(everything, spec(), rows).provenance
    assert build_table(everything, spec(), some).provenance == known
    none = rows.with_columns(device=pl.lit(""))
    assert build_table(everything, spec(), none).provenance == (
        "27 of 36 trials · activemem 0.1.0 (a1b2c3d) · 2026-11-28"
    )


def test_an_empty_store_gives_a_table_of_what_is_to_come(everything: Study, rows: pl.DataFrame) -> None:
    made = build_table(everything, spec(), rows.clear())
    assert {cell.status for row in made.cells for cell in row} == {CellStatus.MISSING}
    assert made.provenance == "0 of 36 trials"


def test_rows_of_other_studies_change_nothing(everything: Study, rows: pl.DataFrame) -> None:
    one = load_study(everything.document.text, overrides=("factors.seed=[0]",))
    own = rows.filter(pl.col("trial").is_in([trial.id for trial in one.trials]))
    assert len(own) < len(rows)
    assert build_table(one, spec(), rows) == build_table(one, spec(), own)


def test_the_order_of_the_stores_rows_changes_nothing(everything: Study, rows: pl.DataFrame) -> None:
    made = build_table(everything, spec(), rows)
    shuffled = [rows.sample(fraction=1, shuffle=True, seed=seed) for seed in range(5)]
    assert [build_table(everything, spec(), order) for order in shuffled] == [made] * 5


def test_all_faults_of_a_table_are_reported_together(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    with golden.raises(TableError):
        build_table(
            everything, spec(rows="mixr", columns="mixr", value="max_lenght", published="table5"), rows
        )


def test_a_factor_that_a_cell_would_mix_is_named_with_its_levels(
    everything: Study, rows: pl.DataFrame, golden: GoldenTexts
) -> None:
    with golden.raises(TableError):
        build_table(everything, spec(columns="seed"), rows)


def test_every_pair_of_factors_can_be_rows_and_columns_if_no_third_is_left(
    everything: Study, rows: pl.DataFrame
) -> None:
    narrow = load_study(everything.document.text, overrides=('factors.task=["sort"]',))
    for first, second in itertools.permutations(("mixer", "task", "seed"), 2):
        if "mixer" in (first, second):
            made = build_table(narrow, spec(rows=first, columns=second), rows)
            assert made.rows == tuple(map(str, narrow.factors[first]))


@pytest.mark.parametrize("bold", ["best", "tested"])
def test_no_cell_is_best_in_a_column_of_equal_values(everything: Study, rows: pl.DataFrame, bold: str):
    better = {trial.id for trial in everything.trials if trial.levels["task"] == "sort"} & {
        trial.id for trial in everything.trials if trial.levels["mixer"] == "sa"
    }
    rows = rows.filter(status="done")  # a cell with a failed seed is worse than the others
    metrics = [[{"name": "loss", "value": 1.0 if trial in better else 2.0}] for trial in rows["trial"]]
    made = build_table(
        everything, spec(value="loss", bold=bold), rows.with_columns(metrics=pl.Series(metrics))
    )
    shown = {
        (row, key.level)
        for row, cells in zip(made.rows, made.cells, strict=True)
        for key, cell in zip(made.keys, cells, strict=True)
        if cell.best
    }
    assert {task for _, task in shown} == {"sort"}
    assert ("sa", "sort") in shown


@pytest.mark.parametrize("bold", ["best", "tested"])
def test_an_infinite_value_is_shown_by_its_sign_and_is_never_the_best(
    everything: Study, rows: pl.DataFrame, bold: str, golden: GoldenTexts
) -> None:
    infinite = {("sa", "sort"): (0, 1, 2), ("sa", "copy"): (0, 1, 2), ("conv(k=20)", "copy"): (1,)}
    losses = {
        trial.id: math.inf
        if trial.levels["seed"] in infinite.get((str(trial.levels["mixer"]), str(trial.levels["task"])), ())
        else 2.0
        for trial in everything.trials
    }
    metrics = pl.Series([[{"name": "loss", "value": losses[trial]}] for trial in rows["trial"]])
    made = build_table(everything, spec(value="loss", bold=bold), rows.with_columns(metrics=metrics))
    shown = {place: cell_of(made, *place) for place in infinite} | {
        ("conv(k=20)", "sort"): cell_of(made, "conv(k=20)", "sort")
    }
    assert {place: (cell.full_text, cell.best) for place, cell in shown.items()} == {
        ("sa", "sort"): ("∞", False),
        ("sa", "copy"): ("∞", False),
        ("conv(k=20)", "copy"): ("∞", False),
        ("conv(k=20)", "sort"): ("2.0000 ± 0.0000", True),
    }
    notes = [note.text for note in made.footnotes if "infinite" in note.text]
    golden(notes)


UNSOLVED = (
    "none of these trainings solved length 5, the start of the curriculum: train longer or start shorter"
)


@pytest.mark.parametrize(("lengths", "told"), [((0.0, 0.0), [UNSOLVED]), ((0.0, 6.0), [])])
def test_a_table_of_lengths_that_are_all_0_says_what_to_change(
    lengths: tuple[float, ...], told: list[str]
) -> None:
    table = {"name": "lengths", "rows": "mixer", "value": "max_length"}
    factors = {"mixer": ["sa", "conv(k=3)"], "task": ["sort"]}
    study = load_study(study_text(factors=factors, table=[table]))
    ended = [
        trial_frame(made_row(trial, {"max_length": length}, number))
        for number, (trial, length) in enumerate(zip(study.trials, lengths, strict=True))
    ]
    made = build_table(study, study.tables[0], pl.concat(ended))
    assert [note.text for note in made.footnotes] == told
    marks = [tuple(mark for mark in cell.marks if mark.isalpha()) for (cell,) in made.cells]
    assert marks == [("a",) * len(told)] * 2


@pytest.mark.parametrize(("lower", "differs"), [(7.0, True), (9.0, False)], ids=["far", "near"])
def test_a_table_and_a_claim_agree_on_two_rows_whose_seeds_have_one_value(lower: float, differs: bool):
    holds = "max_length[mixer=sa] > max_length[mixer=conv(k=3)]"
    keys = {"name": "t", "rows": "mixer", "value": "max_length", "baseline": "conv(k=3)"}
    factors = {"mixer": ["sa", "conv(k=3)"], "task": ["reverse"], "seed": [0, 1, 2]}
    study = load_study(study_text(factors=factors, table=[keys], claim=[{"name": "c", "holds": holds}]))
    ended = [
        made_row(trial, {"max_length": 10.0 if trial.levels["mixer"] == "sa" else lower}, number)
        for number, trial in enumerate(study.trials)
    ]
    outcomes = pl.concat(map(trial_frame, ended))
    (claim,) = check_claims(study, outcomes)
    first, second = (cells[0] for cells in build_table(study, study.tables[0], outcomes).cells)
    assert (claim.verdict is Verdict.CONFIRMED, first.is_significant, not second.tie) == (differs,) * 3


def test_a_task_of_which_no_training_solved_the_first_length_is_marked_beside_another():
    table = {"name": "lengths", "rows": "mixer", "columns": "task", "value": "max_length"}
    factors = {"mixer": ["sa", "conv(k=3)"], "task": ["sort", "not"]}
    study = load_study(study_text(factors=factors, table=[table]))
    ended = [
        trial_frame(made_row(trial, {"max_length": 6.0 * (trial.levels["task"] == "not")}, number))
        for number, trial in enumerate(study.trials)
    ]
    made = build_table(study, study.tables[0], pl.concat(ended))
    assert [note.text for note in made.footnotes] == [UNSOLVED]
    assert [[cell.marks for cell in row] for row in made.cells] == [[("a",), ()]] * 2


PARITY, MQAR = (
    f"none of these models gets above {limit}, where guessing gives {guess}, so none has learnt this; "
    "train longer, or make the task easier"
    for limit, guess in (("0.547", "0.5"), ("0.291", "0.25"))
)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((0.51, 0.27, 0.49, 0.02), [("a", "b"), ("a", "b")]),
        ((0.51, 0.27, 0.49, 0.4), [("a", ""), ("a", "")]),  # one model has learnt the other task
        ((0.51, 0.27, None, 0.02), [("a", "b"), ("", "b")]),  # one has not been trained
    ],
)
def test_a_task_that_no_model_has_learnt_is_marked(
    values: tuple[float | None, ...], told: list[tuple[str, str]]
) -> None:
    table = {"name": "accuracy", "rows": "mixer", "columns": "task", "value": "dev_accuracy"}
    factors = {"mixer": ["sa", "conv(k=3)"], "task": ["parity", "mqar"], "seed": [0]}
    study = load_study(study_text(factors=factors, train={"curriculum": None}, table=[table]))
    ended = [
        trial_frame(made_row(trial, {"dev_accuracy": value}, number))
        for number, (trial, value) in enumerate(zip(study.trials, values, strict=True))
        if value is not None
    ]
    made = build_table(study, study.tables[0], pl.concat(ended))
    notes = {note.mark: note.text for note in made.footnotes}
    shown = [tuple(notes.get("".join(cell.marks), "") for cell in cells) for cells in made.cells]
    marks = {"a": PARITY, "b": MQAR, "": ""}
    assert shown == [tuple(marks[mark] for mark in row) for row in told]
    assert not any(cell.best for cells in made.cells for cell in cells if cell.marks)


def test_the_best_points_of_a_search_whose_lengths_are_all_0_say_what_to_change(tmp_path: Path) -> None:
    search = {"trials": 2, "metric": "max_length", "sampler": "grid"}
    model, space = {"recipe": "conv(k={k})"}, {"k": "choice(1, 3)"}
    study = load_study(study_text(space, model=model, task={"name": "sort"}, search=search))
    store = Store(tmp_path)
    for number, k in enumerate((1, 3)):
        row = made_row(study.search.trial_of({"k": k}), {"max_length": 0.0}, number)
        store.write(replace(row, factors=json.dumps({"k": k, "seed": 0})), [])
    assert UNSOLVED in " ".join(
        " ".join(format_best_points(study, find_points(study, store.trials()))).split()
    )


def test_the_bound_of_matched_costs_is_rounded_up(tmp_path):
    study = load_study("which-mixer-state")
    largest = max(abs(match.largest.relative_residual) for match in study.size_matches.values())
    assert 0.02 < largest < 0.0202
    caption = build_table(study, study.tables[0], Store(tmp_path).trials()).sentences
    assert "equal state within 2.1 %" in " ".join(caption)


def test_costs_that_follow_from_settings_are_counted_without_a_spread(tmp_path: Path) -> None:
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)"},
        task={"name": "sort"},
        factors={"mixer": ["sa(heads=1, head_width=8)", "conv(k=3)"], "seed": [0, 1], "task": None},
        table=[{"name": "costs", "rows": "mixer", "value": ["state_per_token", "state_kib", "reach"]}],
        claim=[{"name": "sees more", "holds": "reach[mixer=sa] > reach[mixer=conv]"}],
    )
    study, store = load_study(text), Store(tmp_path)
    for trials in ((), study.trials):  # costs are known before and after the training
        for number, trial in enumerate(trials):
            store.write(made_row(trial, {"loss": 1.0}, number), [])
        results = StudyResults(study, store)
        made = results.table("costs")
        assert [[cell.full_text for cell in row] for row in made.cells] == [
            ["16", "2.5", "40"],
            ["0", "0.1", "3"],
        ]
        assert "mean" not in made.caption
        assert results.check_claims()[0].verdict == Verdict.CONFIRMED


def test_a_caption_names_trials_of_code_with_uncommitted_changes_beside_others(everything, rows):
    def captions(commits: list[str]) -> str:
        stored = rows.with_columns(commit=pl.Series((commits * len(rows))[: len(rows)]))
        return " ".join(build_table(everything, everything.tables[0], stored).sentences)

    done = len(rows.filter(status="done"))
    dirty = len(rows.with_row_index().filter(pl.col("index") % 2 == 1, status="done"))
    told = "Trials of this study by activemem with uncommitted changes:"
    both = captions(["3fb2e85", "5d02964+a1b2"])
    assert f"{told} {dirty} (5d02964+a1b2); without: {done - dirty}." in both
    assert told not in captions(["3fb2e85", "5d02964"])
    assert told not in captions(["5d02964+a1b2"])
