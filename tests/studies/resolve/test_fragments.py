"""Fragments of [recipes] can replace any part of a recipe, and do not affect a trial's id."""

import pytest

from activemem import StudyError, load_study
from activemem.grammar.nodes import ChoiceDimension, IntegerDimension

from ...study_texts import replaced, study_text

TEXT = study_text(
    model={"recipe": "2 * ({mixer} >> {feed})"},
    task={"name": "reverse"},
    train={"steps_per_epoch": 3},
    recipes={"both": "sa + {local}", "local": "conv(k={k})", "feed": "ff(16)"},
    factors={"mixer": ["sa", "{both}"], "k": [3, 5]},
)

PLAIN = TEXT.replace("{feed}", "ff(16)").replace("{both}", "sa + conv(k={k})")
PLAIN = PLAIN[: PLAIN.index("[recipes]")] + PLAIN[PLAIN.index("[factors]") :]


def test_fragments_fill_the_recipe_levels_and_each_other():
    assert [trial.settings.model.recipe for trial in load_study(TEXT).trials] == [
        "2 * (sa >> ff(16))",
        "2 * (sa + conv(k=3) >> ff(16))",
        "2 * (sa + conv(k=5) >> ff(16))",
    ]


def test_a_trial_s_id_depends_on_the_resolved_recipe_alone():
    assert [trial.id for trial in load_study(TEXT).trials] == [trial.id for trial in load_study(PLAIN).trials]


def test_a_trial_has_a_level_that_is_a_fragment_as_it_is_written():
    assert [dict(trial.levels) for trial in load_study(TEXT).trials] == [
        {"mixer": "sa", "k": 3, "seed": 0},
        {"mixer": "{both}", "k": 3, "seed": 0},
        {"mixer": "{both}", "k": 5, "seed": 0},
    ]


def test_a_fragment_binds_as_one_part():
    text = replaced(
        TEXT,
        ("2 * ({mixer} >> {feed})", "2 * {pair} >> {feed}"),
        ("[recipes]", '[recipes]\npair = "{mixer} >> sa"'),
    )
    assert load_study(text).trials[0].settings.model.recipe == "2 * (sa >> sa) >> ff(16)"


def test_an_override_may_change_a_fragment():
    study = load_study(TEXT, ["recipes.feed=ff(32)"])
    assert study.trials[0].settings.model.recipe == "2 * (sa >> ff(32))"


def test_an_override_may_leave_fragments_unused_and_a_file_may_not():
    assert [trial.settings.model.recipe for trial in load_study(TEXT, ["factors.mixer=['sa']"]).trials] == [
        "2 * (sa >> ff(16))"
    ]
    whole = load_study(TEXT, ["model.recipe='2 * ({mixer} >> ff(8))'"])
    assert whole.trials[0].settings.model.recipe == "2 * (sa >> ff(8))"
    with pytest.raises(StudyError, match=r"'feed' is unused: write \{feed\} into"):
        load_study(replaced(TEXT, (">> {feed}", ">> ff(8)")), ["factors.mixer=['sa']"])
    with pytest.raises(StudyError, match=r"'more' is unused: write \{more\} into"):
        load_study(TEXT, ["factors.mixer=['sa']", "recipes.more=sa"])


def test_names_of_published_columns_stay_when_an_override_takes_their_levels_away():
    study = load_study("memory-degradation", ['factors.model=["{luong}", "{bahdanau}"]'])
    assert len(study.trials) == 160
    assert "theta[luong]:{luong_inputs}" in study.tables[0].published[0].columns


def test_a_fragment_may_hold_search_dimensions():
    text = (
        replaced(
            TEXT,
            ('"ff(16)"', '"ff(choice(16, 32))"'),
            ("k = [3, 5]", ""),
            (
                'mixer = ["sa", "{both}"]',
                'mixer = ["sa", "{both}"]\n\n[search]\ntrials = 3\nmetric = "loss"\ndirection = "min"',
            ),
            ("conv(k={k})", "conv(k={k}, act=relu)"),
        )
        + '\n[search.space]\nk = "integer(3, 9)"\n'
    )
    study = load_study(text)
    assert study.dimensions == {
        "mixer": ChoiceDimension(("sa", "{both}")),
        "k": IntegerDimension(3, 9),
        "ff.filter": ChoiceDimension((16, 32)),
    }
    trial = study.search.trial_of({"mixer": "{both}", "k": 4, "ff.filter": 32})
    assert trial.settings.model.recipe == "2 * (sa + conv(k=4) >> ff(32))"
