"""Search dimensions for holes and in recipes, and the trials of points."""

import pytest

from activemem import StudyError, load_study
from activemem.grammar import RecipeError
from activemem.grammar.dimensions import representative_values
from activemem.grammar.nodes import ChoiceDimension, IntegerDimension, RealDimension
from activemem.studies.schema.search import enumerate_points, is_enumerable, read_dimension

from ...study_texts import replaced, study_text

TEXT = study_text(
    study={"name": "tune", "title": "The best kernel"},
    model={"recipe": "4 * (conv(k={k}) >> ff(512))", "d_model": 128, "dropout": "{dropout}"},
    task={"name": "reverse"},
    train={"batch_size": 32, "epochs": 20, "steps_per_epoch": 100},
    search={"sampler": "tpe", "trials": 30, "metric": "max_length", "direction": "max", "scheduler": "asha"},
    space={"k": "integer(3, 40)", "dropout": "real(0.0, 0.5)"},
)


def message(text):
    with pytest.raises(StudyError) as caught:
        load_study(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("integer(3, 40)", IntegerDimension(3, 40)),
        ("integer(8, 64, step=8)", IntegerDimension(8, 64, step=8)),
        ("integer(1, 1000, log=true)", IntegerDimension(1, 1000, log=True)),
        ("real(0.0, 0.5)", RealDimension(0.0, 0.5)),
        ("real(1e-5, 1, log=true)", RealDimension(1e-5, 1.0, log=True)),
        ("choice(relu, gelu)", ChoiceDimension(("relu", "gelu"))),
        ("choice(64, 128)", ChoiceDimension((64, 128))),
        ("choice(0.5, true, false)", ChoiceDimension((0.5, True, False))),
        ("choice(sa, sa + conv(k=20))", ChoiceDimension(("sa", "sa + conv(k=20)"))),
    ],
)
def test_a_dimension_is_read_from_its_text(text, dimension):
    assert read_dimension(text) == dimension


@pytest.mark.parametrize(
    "text",
    [
        "sa",
        "choice()",
        "log(1e-3, 3e-2)",
        "integer(3)",
        "integer(40, 3)",
        "real(0, 1, log=true)",
        "integer(3, 40",
        "choice(a=sa, 3)",
    ],
)
def test_a_text_that_is_no_dimension_is_reported(text, golden):
    with pytest.raises(RecipeError) as caught:
        read_dimension(text)
    golden([fault.message for fault in caught.value.faults])


@pytest.mark.parametrize(
    "value",
    [
        "[3, 40]",
        "{ low = 3, high = 40 }",
        "0.1",
    ],
)
def test_a_dimension_that_is_no_text_is_reported_with_the_text_that_is_meant(value, golden):
    with golden.raises(StudyError):
        load_study(TEXT, [f"search.space.dropout={value}"])


def test_a_dimension_is_represented_by_both_ends_or_every_option():
    assert representative_values(IntegerDimension(3, 40)) == (3, 40)
    assert representative_values(ChoiceDimension(("sa", 3))) == ("sa", 3)


def test_a_search_has_dimensions_and_no_grid():
    study = load_study(TEXT)
    assert study.dimensions == {"k": IntegerDimension(3, 40), "dropout": RealDimension(0.0, 0.5)}
    assert study.trials == ()
    assert study.search.settings.trials == 30
    assert (
        study.search.settings.metric,
        study.search.settings.direction,
        study.search.settings.scheduler.name,
    ) == (
        ("max_length",),
        ("max",),
        "asha",
    )


def test_a_point_becomes_a_trial_for_each_seed():
    study = load_study(TEXT + "\n[factors]\nseed = [4, 5]\n")
    trials = study.search.trials_of({"k": 7, "dropout": 0.25})
    assert [trial.settings.seed for trial in trials] == [4, 5]
    assert [dict(trial.levels) for trial in trials] == [
        {"k": 7, "dropout": 0.25, "seed": seed} for seed in (4, 5)
    ]
    assert {trial.settings.model.recipe for trial in trials} == {"4 * (conv(k=7) >> ff(512))"}
    assert {trial.settings.model.dropout for trial in trials} == {0.25}
    assert study.search.trial_of({"k": 7, "dropout": 0.25}, 5) == trials[1]


def test_a_point_is_the_same_trial_as_the_cell_of_a_grid():
    grid = TEXT[: TEXT.index("[search]")] + "[factors]\nk = [7]\ndropout = [0.25]\n"
    assert load_study(grid).trials[0].id == load_study(TEXT).search.trial_of({"k": 7, "dropout": 0.25}).id


def test_dimensions_may_be_in_the_recipe_itself():
    text = replaced(
        TEXT, ('"4 * (conv(k={k}) >> ff(512))"', '"4 * (choice(sa, conv(k=integer(3, 9))) >> ff({filter}))"')
    )
    study = load_study(text.replace('k = "integer(3, 40)"', 'filter = "choice(64, 128)"'))
    assert study.dimensions == {
        "filter": ChoiceDimension((64, 128)),
        "dropout": RealDimension(0.0, 0.5),
        "choice": ChoiceDimension(("sa", "conv(k=integer(3, 9))")),
        "conv.k": IntegerDimension(3, 9),
    }
    point = {"filter": 64, "dropout": 0.0, "choice": "conv(k=integer(3, 9))", "conv.k": 5}
    assert study.search.trial_of(point).settings.model.recipe == "4 * (conv(k=5) >> ff(64))"
    other = study.search.trial_of({**point, "choice": "sa"})
    assert other.settings.model.recipe == "4 * (sa >> ff(64))"
    assert dict(other.levels) == {"filter": 64, "dropout": 0.0, "choice": "sa", "seed": 0}
    assert study.search.trial_of({"filter": 64, "dropout": 0.0, "choice": "sa"}) == other


CONDITIONAL = (
    ('"4 * (conv(k={k}) >> ff(512))"', '"choice({mixer}, 2 * {mixer}, conv(k=integer(3, 4))) >> ff(8)"'),
    ('dropout = "{dropout}"', "dropout = 0.0"),
    ('k = "integer(3, 40)"', 'k = "integer(5, 9, step=2)"'),
    ('dropout = "real(0.0, 0.5)"', 'mixer = "choice(sa, cgru(k={k}))"'),
)


def test_only_the_dimensions_that_a_point_takes_are_asked_for():
    study, asked = load_study(replaced(TEXT, *CONDITIONAL)), []

    def ask(name, dimension):
        asked.append((name, dimension))
        return {"choice": "2 * {mixer}", "mixer": "cgru(k={k})", "k": 7}[name]

    values = study.search.choose(ask)
    assert values == {"k": 7, "mixer": "cgru(k={k})", "choice": "2 * {mixer}"}
    assert [name for name, _ in asked] == ["choice", "mixer", "k"]
    assert dict(asked) == {name: study.dimensions[name] for name in values}
    assert study.search.trial_of(values).settings.model.recipe == "2 * cgru(k=7) >> ff(8)"


def test_all_points_are_listed_the_last_dimension_asked_for_first():
    study = load_study(replaced(TEXT, *CONDITIONAL))
    assert [
        study.search.trial_of(values).settings.model.recipe
        for values in enumerate_points(study.search.choose)
    ] == [
        *(f"{mixer} >> ff(8)" for mixer in ("sa", "cgru(k=5)", "cgru(k=7)", "cgru(k=9)")),
        *(f"2 * {mixer} >> ff(8)" for mixer in ("sa", "cgru(k=5)", "cgru(k=7)", "cgru(k=9)")),
        "conv(k=3) >> ff(8)",
        "conv(k=4) >> ff(8)",
    ]
    assert is_enumerable(study.dimensions)


def test_real_numbers_cannot_be_listed(golden):
    study = load_study(TEXT)
    assert not is_enumerable(study.dimensions)
    with golden.raises(ValueError):
        list(enumerate_points(study.search.choose))


def test_factors_of_several_levels_join_the_search():
    text = replaced(TEXT, ("conv(k={k})", "{mixer} + conv(k={k})"), ('"reverse"', '"{task}"'))
    study = load_study(text + '\n[factors]\nmixer = ["sa", "conv(k=3)"]\ntask = ["sort"]\n')
    assert study.dimensions["mixer"] == ChoiceDimension(("sa", "conv(k=3)"))
    trial = study.search.trial_of({"mixer": "sa", "k": 3, "dropout": 0.1})
    assert dict(trial.levels) == {"task": "sort", "mixer": "sa", "k": 3, "dropout": 0.1, "seed": 0}


def test_epochs_may_be_searched():
    text = replaced(
        TEXT,
        ("epochs = 20", 'epochs = "{epochs}"'),
        ("[search.space]", '[search.space]\nepochs = "integer(5, 50)"'),
    )
    assert [trial.settings.train.epochs for trial in load_study(text).examples] == [5, 50]


@pytest.mark.parametrize(
    "values",
    [
        {"k": 3},
        {"k": 3, "dropout": 0.1, "width": 8},
        {"k": 3, "dropout": 0.1, "conv.k": 8},
        {"k": 0, "dropout": 0.1},
        {"k": 3, "dropout": 1.5},
    ],
)
def test_a_point_that_does_not_fit_is_reported(values, golden):
    with golden.raises(ValueError):
        load_study(TEXT).search.trial_of(values)


@pytest.mark.parametrize(
    "change",
    [
        ('"tpe"', '"grid"'),
        ('"tpe"', '"bayes"'),
        ('"max_length"', '"max_lenght"'),
        ('sampler = "tpe"', 'sampler = "random"\npopulation = 9'),
        ('"tpe"', '{ name = "evolution", population = 9, sample = 10 }'),
        ('"tpe"', '{ name = "tpe", multivariate = true }'),
        ("integer(3, 40)", "integer(40, 3)"),
        ("integer(3, 40)", "real(3, 40)"),
        ("integer(3, 40)", "integer(3, 4000)"),
        ("real(0.0, 0.5)", "real(0.0, 1.5)"),
        ("[search.space]", "[search.space]\nwidth = 'integer(8, 16)'"),
        ("integer(3, 40)", "choice(3, cnv(k=3))"),
        (
            '\n[search.space]\nk = "integer(3, 40)"\ndropout = "real(0.0, 0.5)"',
            "\n[factors]\nk = [3]\ndropout = [0]",
        ),
        ("[search.space]", "[factors]\nk = [3]\n\n[search.space]"),
    ],
    ids=lambda value: value[1],
)
def test_an_impossible_search_is_reported(change, golden):
    golden(message(replaced(TEXT, change)))


def test_names_and_dimensions_are_looked_at_where_something_else_of_a_search_is_wrong():
    overrides = [
        *("search.trials=-3", 'search.metric=["max_length", "nonsense"]', 'study.limits.bleuu="< 3"'),
        'search.space.k="integer(9, 3)"',
    ]
    with pytest.raises(StudyError) as caught:
        load_study(TEXT, overrides)
    found = dict(fault.message.split(": ", 1) for fault in caught.value.faults)
    assert found.keys() == {"[search] trials", "[search] metric", "[study] limits", "[search.space] k"}
    assert "'nonsense'" in found["[search] metric"]
    assert "'bleuu'" in found["[study] limits"]
    assert not any("parameters, parameters" in each for each in found.values())
