"""Names of trials in the lines of a running study."""

import pytest

from activemem import load_study
from activemem.cli.views.trial_lines import TrialNameColumns
from activemem.studies import Trial

from ...study_texts import study_text
from ..trial_factories import make_trial as small

LENGTHS, RATES = (50, 1000), (0.01, 0.0003)


def trial(seed=0, **levels):
    """Return a trial named by these levels."""
    return Trial(study="tiny", levels={**levels, "seed": seed}, settings=small(seed=seed).settings)


def grid(*, pools=("attention_pool", "mean_pool"), seeds=(0, 1)):
    return [
        trial(seed, pool=pool, task=task, length=length, **{"train.lr": lr})
        for pool in pools
        for task in ("recall_addition", "recall_multiplication")
        for length in LENGTHS
        for lr in RATES
        for seed in seeds
    ]


def line(columns, each, room):
    return "".join(f"  {cell}" for cell in columns.cells(each, room))


def both(trials, room):
    """Return the lines of the first and last of these trials."""
    columns = TrialNameColumns(trials)
    return [line(columns, each, room) for each in (trials[0], trials[-1])]


@pytest.mark.parametrize(
    ("room", "lines"),
    [
        (
            80,
            [
                "  attention_pool  recall_addition        length=50    lr=0.01    seed 0",
                "  mean_pool       recall_multiplication  length=1000  lr=0.0003  seed 1",
            ],
        ),
        (
            70,
            [
                "  attention_pool  recall_addition        50    0.01    seed 0",
                "  mean_pool       recall_multiplication  1000  0.0003  seed 1",
            ],
        ),
        (
            50,
            [
                "  attentio…ool  recall_a…ion  50    0.01    seed 0",
                "  mean_pool     recall_m…ion  1000  0.0003  seed 1",
            ],
        ),
        (
            41,
            [
                "  atte…ol  re…ition  50    0.01    seed 0",
                "  mean…ol  re…ation  1000  0.0003  seed 1",
            ],
        ),
    ],
)
def test_columns_lose_what_says_least_until_they_fit(room, lines):
    assert both(grid(), room) == lines
    assert all(len(each) <= room for each in lines)


def test_factors_of_one_level_go_first():
    assert both(grid(pools=["mean_pool"], seeds=[0]), 52) == [
        "  recall_addition        length=50    lr=0.01  ",
        "  recall_multiplication  length=1000  lr=0.0003",
    ]


def test_labels_stand_for_the_factors_that_follow_from_them():
    best, other = "highway_conv(k=9) >> ff(64)", "highway_conv(k=9) >> ff(48)"
    trials = [
        trial(seed, point=point, recipe=recipe, task=task)
        for point, recipe in (("best_1", best), ("best_2", other))
        for task in ("sort", "addition")
        for seed in (4, 5)
    ]
    assert line(TrialNameColumns(trials, ["point"]), trials[0], 80).split() == [
        *("best_1", *best.split(), "sort", "seed", "4")
    ]
    columns = TrialNameColumns(trials, ["point"])
    assert line(columns, trials[0], 40) == "  best_1  sort      seed 4"
    assert line(TrialNameColumns(trials, ["task"]), trials[0], 40).startswith("  best_1  highw")


def test_arguments_that_differ_stay():
    trials = [trial(0, mixer="conv(k=20)"), trial(1, mixer="sa + conv(k=3)")]
    assert both(trials, 26)[0] == "  conv(k=20)      seed 0"
    same = [trial(0, mixer="conv(k=20)"), trial(1, mixer="sa + conv(k=20)")]
    assert both(same, 22)[0] == "  conv       seed 0"


def test_the_first_point_of_a_search_has_its_values_where_the_line_is_narrow():
    text = study_text(
        model={"recipe": "conv(k={kernel}) >> ff({filter})"},
        factors={"task": ["multiply", "addition"], "seed": [0]},
        search={"metric": "loss", "trials": 9, "across": ["task"]},
        space={"kernel": "integer(2, 9)", "filter": "choice(64, 128)"},
    )
    study = load_study(text)
    columns, shown = TrialNameColumns.of(study), []
    for point in ({"kernel": 3, "filter": 64}, {"kernel": 5, "filter": 128}):
        trials = study.search.trials_of(point)
        columns.add(trials)
        shown += [line(columns, each, 34) for each in trials]
    assert shown == [
        "  multiply  kernel=3  filter=64",
        "  addition  kernel=3  filter=64",
        "  multiply  kernel=5  filter=128",
        "  addition  kernel=5  filter=128",
    ]


def test_no_two_levels_of_a_narrow_column_look_alike_where_they_can_differ():
    trials = grid()
    for room in (48, 40, 38):
        columns = TrialNameColumns(trials)
        lines = {line(columns, each, room) for each in trials}
        assert len(lines) == len(trials)
        assert {len(each) for each in lines} == {room}


def test_trials_may_lack_a_factor_and_columns_grow_with_the_trials():
    first, second = trial(mixer="sa", task="sort"), trial(mixer="sa", task="not", dropout=0.1)
    columns = TrialNameColumns([first])
    assert columns.cells(first, 80) == ["sa", "sort", "seed 0"]
    columns.add([second])
    assert columns.cells(first, 80) == ["sa", "sort", "           ", "seed 0"]
    assert columns.cells(second, 80) == ["sa", "not ", "dropout=0.1", "seed 0"]


def test_a_trial_that_is_added_again_changes_nothing():
    pair = [trial(mixer="sa", task="sort_words", width=64), trial(mixer="cgru", task="not_words", width=96)]
    columns = TrialNameColumns(pair)
    before = [columns.cells(each, room) for each in pair for room in (80, 24, 12)]
    columns.add(pair)
    assert [columns.cells(each, room) for each in pair for room in (80, 24, 12)] == before


def test_a_single_trial_keeps_its_words():
    each = trial(mixer="persistent_conv(k=20)", task="reverse_copy_bigrams")
    assert line(TrialNameColumns([each]), each, 40) == "  persisten…conv  reverse_c…rams  seed 0"
    assert line(TrialNameColumns([each]), each, 3) == "  …  …  seed 0"


def test_names_of_numbers_go_last():
    trials = [
        trial(seed, mixer=mixer, delay=delay, back=back, **{"train.beta": 0.5})
        for mixer in ("sa(heads=2, head_width=8)", "conv(k=3)")
        for delay in (2, 4)
        for back in (2, 4)
        for seed in (0, 1)
    ] + [trial(mixer="conv(k=3)", delay=2, back=2, **{"train.beta": 0.9})]
    assert both(trials, 50)[0] == "  sa    delay=2  back=2  beta=0.5  seed 0"
    assert both(trials, 26)[0] == "  sa    2  2  0.5  seed 0"


def test_points_of_a_search_have_the_values_that_they_take_with_their_names():
    both = "conv(k=integer(2, 9)) + conv(k=integer(2, 9))"
    wide = trial(lr=0.01, choice=both, **{"conv.k": 3, "conv.k.2": 5})
    short = trial(lr=0.023456, choice="sa(heads=2)")
    columns = TrialNameColumns([wide])
    assert line(columns, wide, 80) == "  lr=0.01  conv(k=…) + conv(k=…)  k=3  k.2=5  seed 0"
    columns.add([short])
    assert line(columns, short, 80) == f"  lr=0.02346  {'sa(heads=2)':<21}  {'':10}  seed 0"
