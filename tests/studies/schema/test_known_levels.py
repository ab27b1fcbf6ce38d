"""Level names of a factor: current ones, and those that an override removes."""

import pytest

from activemem import StudyError, load_study

from ...study_texts import study_text

TABLE = {"name": "one", "rows": "mixer", "columns": "task", "value": "loss"}
CURVE = {"name": "one", "kind": "line", "value": "loss", "x": "width", "series": "mixer"}

OVERRIDES = ('factors.mixer=["sa"]', 'factors.task=["sort"]', "factors.width=[16]")

NAMED = {
    "a baseline": (
        {**TABLE, "select": {"width": 8}, "baseline": "conv(k=3)"},
        "baseline: unknown level 'conv(k=33)' of mixer; nearest: conv(k=3)",
    ),
    "what is selected": (
        {**TABLE, "select": {"width": 8, "mixer": ["sa", "conv(k=3)"]}},
        "select.mixer: unknown level 'conv(k=33)' of mixer; nearest: conv(k=3)",
    ),
    "a published row": (
        {**TABLE, "select": {"width": 8}, "published": {"table": "table4", "rows": {'"conv(k=3)"': "conv"}}},
        "published.rows.conv(k=33): no row 'conv(k=33)'; nearest: conv(k=3)",
    ),
    "a published column": (
        {
            **TABLE,
            "select": {"width": 8},
            "published": {"table": "table4", "columns": {'"loss:reverse"': "reverse"}},
        },
        "published.columns.loss:rreverse: no column 'loss:rreverse'; nearest: loss:reverse",
    ),
    "what a figure selects": (
        {**CURVE, "select": {"task": "reverse"}},
        "select.task: unknown level 'rreverse' of task; nearest: reverse",
    ),
    "an accent": (
        {**CURVE, "select": {"task": "sort"}, "accent": "conv(k=3)"},
        "accent: unknown level 'conv(k=33)' of mixer; nearest: conv(k=3)",
    ),
}


def text_with(shown, *misspelling):
    """Return a study with this table or figure, optionally with a misspelling."""
    text = study_text(
        study={"paper": "active-memory-transformer"},
        model={"d_model": "{width}"},
        factors={"mixer": ["sa", "conv(k=3)", "conv(k=20)"], "task": ["reverse", "sort"], "width": [8, 16]},
        **{"table" if "rows" in shown else "curve": [shown]},
    )
    study, mark, last = text.partition("[[")
    return study + mark + (last.replace(*misspelling, 1) if misspelling else last)


@pytest.mark.parametrize("named", NAMED)
def test_a_level_of_the_file_may_be_named_whatever_an_override_removes(named):
    study = load_study(text_with(NAMED[named][0]), OVERRIDES)
    assert len(study.tables) + len(study.curves) == 1


@pytest.mark.parametrize("named", NAMED)
def test_a_level_that_neither_the_file_nor_an_override_has_is_a_fault(named):
    shown, told = NAMED[named]
    right, wrong = told.rpartition("; nearest: ")[2], told.partition("'")[2].partition("'")[0]
    with pytest.raises(StudyError) as caught:
        load_study(text_with(shown, right, wrong), OVERRIDES)
    assert [fault.message.partition("]] ")[2] for fault in caught.value.faults] == [told]


def test_a_level_that_an_override_adds_may_be_named_by_an_override():
    added = (
        'factors.mixer=["sa", "conv(k=9)"]',
        "table=[{name='one', rows='mixer', value='loss', "
        "select={task='sort', width=8}, baseline='conv(k=9)'}]",
    )
    assert (
        load_study(text_with(CURVE | {"select": {"task": "sort"}}), added).tables[0].baseline == "conv(k=9)"
    )


def test_a_level_that_select_leaves_out_is_no_row_whether_an_override_removes_it_or_not():
    shown = TABLE | {"select": {"width": 8, "mixer": ["sa", "conv(k=20)"]}, "baseline": "conv(k=3)"}
    for overrides in ((), OVERRIDES):
        with pytest.raises(
            StudyError, match=r"baseline: unknown level 'conv\(k=3\)' of mixer; nearest: conv\(k=20\)"
        ):
            load_study(text_with(shown), overrides)
