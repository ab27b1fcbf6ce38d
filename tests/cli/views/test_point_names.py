"""Each point of a search is named by its own values, independent of other points."""

from activemem.cli.views.trial_lines import PointNames
from activemem.studies.study import load_study

from ...study_texts import study_text

TEXT = study_text(
    model={"recipe": "choice(sa(heads=2), conv(k=integer(2, 9)) + conv(k=integer(2, 9))) >> ff(8)"},
    task={"name": "sort"},
    search={"trials": 9, "metric": "max_length", "direction": "max"},
    space={"lr": "real(1e-4, 1e-1, log=true)"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}},
)
BOTH = "conv(k=integer(2, 9)) + conv(k=integer(2, 9))"


def test_a_point_has_the_values_that_it_takes_with_their_names():
    study = load_study(TEXT)
    names = PointNames(study)
    wide = study.trial_for({"lr": 0.01, "choice": BOTH, "conv.k": 3, "conv.k.2": 5})
    short = study.trial_for({"lr": 0.02, "choice": "sa(heads=2)"})
    assert names.cells(wide, 80) == ["lr=0.01       choice=conv(k=…) + conv(k=…)  conv.k=3  conv.k.2=5"]
    assert [each.rstrip() for each in names.cells(short, 80)] == ["lr=0.02       choice=sa(heads=2)"]
    assert names.cells(wide, 55) == ["lr=0.01       conv(k=…) + conv(k=…)  k=3  k.2=5"]
    assert names.cells(wide, 45) == ["0.01       conv(k=…) + conv(k=…)  3  5"]
    assert len(names.cells(wide, 20)[0]) == 20


def test_the_values_of_all_points_stand_in_columns():
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)", "dropout": "{dropout}"},
        task={"name": "sort"},
        search={"trials": 9, "metric": "max_length", "direction": "max"},
        space={"mixer": "choice(conv(k={k}), sa)", "k": "integer(2, 16)", "dropout": "real(0, 0.3)"},
    )
    study = load_study(text)
    names = PointNames(study)
    points = (
        {"mixer": "conv(k={k})", "k": 3, "dropout": 0.1},
        {"mixer": "sa", "dropout": 0.12345},
        {"mixer": "conv(k={k})", "k": 12, "dropout": 0.04321},
    )
    assert [names.cells(study.trial_for(point), 60)[0] for point in points] == [
        "mixer=conv(k={k})  k=3   dropout=0.1     ",
        "mixer=sa                 dropout=0.1235  ",
        "mixer=conv(k={k})  k=12  dropout=0.04321 ",
    ]


def test_seeds_are_named_if_there_are_several():
    study = load_study(TEXT, ["factors.seed=[0, 1]"])
    [first, second] = study.point_trials({"lr": 0.02, "choice": "sa(heads=2)"})
    names = PointNames(study)
    assert names.cells(first, 80) != names.cells(second, 80)
    assert names.cells(second, 80)[0].split() == ["lr=0.02", "choice=sa(heads=2)", "seed", "1"]
