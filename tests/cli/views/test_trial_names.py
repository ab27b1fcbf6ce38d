"""Names of trials in the lines of a running study."""

import pytest

from activemem.cli.views import TrialNameColumns
from activemem.studies import Trial

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
                "  attention  addition        length=50    lr=0.01    seed 0",
                "  mean       multiplication  length=1000  lr=0.0003  seed 1",
            ],
        ),
        (
            50,
            [
                "  attention  addition        50    0.01    seed 0",
                "  mean       multiplication  1000  0.0003  seed 1",
            ],
        ),
        (
            41,
            [
                "  atte…on  addition  50    0.01    seed 0",
                "  mean     multi…on  1000  0.0003  seed 1",
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


def test_factors_that_follow_from_the_words_of_another_go_with_them():
    trials = [
        trial(seed, mixer=mixer, task=task, width=width)
        for mixer, width in (("sa + conv(k=20)", 64), ("sa", 96), ("cgru(k=20)", 64))
        for task in ("reverse_words", "sort_words")
        for seed in (0, 1)
    ]
    assert both(trials, 40)[0] == "  sa + conv(k=20)  reverse_words  seed 0"


def test_arguments_that_differ_stay():
    trials = [trial(0, mixer="conv(k=20)"), trial(1, mixer="sa + conv(k=3)")]
    assert both(trials, 26)[0] == "  conv(k=20)      seed 0"
    same = [trial(0, mixer="conv(k=20)"), trial(1, mixer="sa + conv(k=20)")]
    assert both(same, 22)[0] == "  conv       seed 0"


def test_no_two_levels_of_a_narrow_column_look_alike_where_they_can_differ():
    trials = grid()
    for room in (36, 32, 30):
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


def test_numbers_keep_their_names_while_words_are_long():
    trials = [
        trial(seed, mixer=mixer, lr=lr)
        for mixer in ("2 * (sa >> ff) >> conv", "2 * (cgru >> ff)")
        for lr in (0.1, 0.01)
        for seed in (0, 1)
    ]
    assert both(trials, 40)[0] == "  2 * (sa >> ff)…> conv  lr=0.1   seed 0"
    assert both(trials, 30)[0] == "  2 * (sa >…conv  0.1   seed 0"


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


def test_a_factor_that_words_imply_is_left_out_only_where_there_is_no_room():
    trials = [
        trial(seed, mixer="sa(heads=2, head_width=16)", dropout=dropout, position=position)
        for seed in (0, 1)
        for dropout, position in ((0.0, "timing"), (0.1, "none"))
    ]
    assert both(trials, 40) == ["  dropout=0    timing  seed 0", "  dropout=0.1  none    seed 1"]
    assert both(trials, 20) == ["  timing  seed 0", "  none    seed 1"]


def test_trials_that_change_one_factor_at_a_time_are_named_by_the_change_in_a_narrow_column():
    usual = {"recipe": "2 * (conv(k={k}) >> ff(96))", "k": 7, "dropout": 0.1, "residual": True, "lr": 0.003}
    changes = [{}, {"recipe": "2 * ff(96)"}, {"k": 3}, {"dropout": 0.0}, {"residual": False}, {"lr": 0.01}]
    trials = [trial(seed, **usual | change) for seed in (0, 1) for change in changes]
    columns = TrialNameColumns(trials)
    assert [line(columns, each, 42) for each in trials[:6]] == [
        "  baseline           seed 0",
        "  recipe=2 * ff(96)  seed 0",
        "  k=3                seed 0",
        "  dropout=0          seed 0",
        "  residual=false     seed 0",
        "  lr=0.01            seed 0",
    ]
    wide = "  2 * (conv(k=3) >> ff(96))  k=3  dropout=0.1  residual=true   lr=0.003  seed 0"
    assert line(columns, trials[2], 80) == wide


def test_a_narrow_yes_or_no_keeps_its_value():
    trials = [
        trial(0, mixer=mixer, separate_documents=value)
        for mixer in ("highway_conv", "persistent_conv")
        for value in (True, False)
    ]
    assert both(trials, 26) == ["  highway     separ…=true ", "  persistent  separ…=false"]


def test_points_of_a_search_have_the_values_that_they_take_with_their_names():
    both = "conv(k=integer(2, 9)) + conv(k=integer(2, 9))"
    wide = trial(lr=0.01, choice=both, **{"conv.k": 3, "conv.k.2": 5})
    short = trial(lr=0.023456, choice="sa(heads=2)")
    columns = TrialNameColumns([wide])
    assert line(columns, wide, 80) == "  lr=0.01  conv(k=…) + conv(k=…)  k=3  k.2=5  seed 0"
    columns.add([short])
    assert line(columns, short, 80) == f"  lr=0.02346  {'sa(heads=2)':<21}  {'':10}  seed 0"
