"""Equal parameters: sizes equal a brute-force search, and residuals are reported."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from activemem import Reach, load_study
from activemem.blocks import Block
from activemem.blocks.core.block import BLOCKS
from activemem.grammar import Parameter, Spec, analyse, lookup, parse
from activemem.grammar.vocabulary.spec import SPECS
from activemem.studies.catalog.tasks import TASKS
from activemem.studies.expansions.match import nearest_sizes

from ...registry_entries import replace_entry
from ...study_texts import replaced, study_text

SA = lookup("sa")
TEXT = study_text(
    study={
        "match": "parameters",
        "baseline": {"mixer": "sa(heads=2, head_width=4)", "filter": 64},
        "tolerance": 0.03,
    },
    model={"recipe": "2 * ({mixer} >> ff({filter}))", "d_model": 16},
    train={"steps_per_epoch": 3},
    factors={
        "mixer": [
            "sa(heads=2, head_width=4)",
            "conv(k=3)",
            "persistent_conv(k=2) + conv(k=1)",
            "ff({filter})",
        ],
        "task": ["sort", "copy"],
    },
)


def counted(recipe, task, d_model=16, norm="pre"):
    """Return the parameters of a whole model."""
    return analyse(
        parse(recipe), d_model=d_model, length=1, vocab=TASKS.get(task).vocab, norm=norm
    ).parameters


@pytest.mark.heavy
def test_every_cell_has_the_size_that_brute_force_finds():
    study = load_study(TEXT)
    recipe = parse("2 * ({mixer} >> ff({filter}))")
    for trial in study.trials:
        mixer, task = trial.levels["mixer"], trial.levels["task"]
        target = counted("2 * (sa(heads=2, head_width=4) >> ff(64))", task)
        found = {
            size: counted(recipe.fill({"mixer": mixer}).fill({"filter": size}).text, task) - target
            for size in range(1, 300)
        }
        best = min(found, key=lambda size: abs(found[size]))
        assert trial.settings.model.recipe == recipe.fill({"mixer": mixer}).fill({"filter": best}).text
        sized = study.size_matches[trial.id]
        (cost,) = sized.costs
        assert (sized.size, cost.target, cost.residual) == (best, target, found[best])
        assert abs(cost.residual) <= 0.03 * target
    assert {found.size for found in study.size_matches.values()} == {64, 56, 55, 40}


def test_the_baseline_keeps_its_own_size_and_levels_say_nothing_of_sizes():
    first, *_ = load_study(TEXT).trials
    assert first.settings.model.recipe == "2 * (sa(heads=2, head_width=4) >> ff(64))"
    assert dict(first.levels) == {"mixer": "sa(heads=2, head_width=4)", "task": "sort", "seed": 0}


def test_a_matched_trial_is_the_same_as_one_that_is_written_out():
    plain = replaced(
        TEXT,
        ('match = "parameters"\n', ""),
        ("tolerance = 0.03\n", ""),
        ('baseline = { mixer = "sa(heads=2, head_width=4)", filter = 64 }\n', ""),
        ("ff({filter}))", "ff(56))"),
        (', "ff({filter})"', ""),
    )
    ids = {trial.id for trial in load_study(plain).trials}
    assert {trial.id for trial in load_study(TEXT).trials if trial.levels["mixer"] == "conv(k=3)"} <= ids


@pytest.mark.heavy
def test_a_width_can_be_solved_and_then_the_vocabulary_counts():
    text = replaced(
        TEXT,
        ("d_model = 16", 'd_model = "{width}"'),
        ("filter = 64", "width = 64"),
        ("ff({filter}))", "ff(32))"),
        (', "ff({filter})"', ""),
    )
    for trial in load_study(text).trials:
        task, model = trial.levels["task"], trial.settings.model
        target = counted("2 * (sa(heads=2, head_width=4) >> ff(32))", task, 64)
        found = {width: abs(counted(model.recipe, task, width) - target) for width in range(1, 130)}
        assert model.d_model == min(found, key=lambda width: found[width])


def test_a_depth_can_be_solved():
    text = replaced(
        TEXT,
        ("2 * ({mixer}", "{filter} * ({mixer}"),
        ("ff({filter}))", "ff(32))"),
        (', "ff({filter})"', ', "sa(heads=2, head_width=2)"'),
    )
    depths = {trial.levels["mixer"]: trial.settings.model.recipe for trial in load_study(text).trials}
    assert depths["conv(k=3)"] == "55 * (conv(k=3) >> ff(32))"
    assert depths["sa(heads=2, head_width=4)"] == "64 * (sa(heads=2, head_width=4) >> ff(32))"


def test_factors_that_the_baseline_does_not_name_stay_those_of_the_cell():
    text = replaced(TEXT, ("16\n", '"{width}"\n'), ("task = [", "width = [16, 32]\ntask = ["))
    for trial in load_study(text).trials:
        width, task = trial.levels["width"], trial.levels["task"]
        target = counted("2 * (sa(heads=2, head_width=4) >> ff(64))", task, width)
        assert load_study(text).size_matches[trial.id].costs[0].target == target


def test_a_cell_without_the_size_may_have_the_parameters_itself():
    text = replaced(
        TEXT,
        ("{filter}))", "8) >> {last})"),
        (', "ff({filter})"]', ', "sa(heads=4, head_width=2)"]\nlast = ["ff({filter})", "ff(64, act=gelu)"]'),
        ("conv(k=3)", "sa(heads=8, head_width=1)"),
        (', "persistent_conv(k=2) + conv(k=1)"', ""),
    )
    sizes = {
        (trial.levels["last"], load_study(text).size_matches[trial.id].size)
        for trial in load_study(text).trials
    }
    assert sizes == {("ff({filter})", 64), ("ff(64, act=gelu)", None)}


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=80),
    st.integers(-5, 5),
    st.integers(-20, 1500),
    st.integers(-10, 90) | st.none(),
)
def test_the_nearest_sizes_of_anything_that_does_not_fall_are_those_of_brute_force(steps, low, target, first):
    counts = [sum(steps[:place]) for place in range(1, len(steps) + 1)]
    high = low + len(counts) - 1
    found = nearest_sizes(lambda size: counts[size - low], target, low, high, first)
    assert abs(counts[found[0] - low] - target) == min(abs(count - target) for count in counts)
    assert len(found) == 1 or counts[min(found) - low] < target <= counts[max(found) - low]


@given(st.integers(1, 10**6), st.integers(0, 10**9), st.integers(0, 10**13))
def test_the_size_of_an_affine_count_is_found_in_few_steps(slope, first, target):
    asked = []

    def count(size):
        asked.append(size)
        return first + slope * size

    found = nearest_sizes(count, target, 1, 2**20)
    best = min(max(round((target - first) / slope), 1), 2**20)
    assert abs(count(found[0]) - target) == min(
        abs(count(size) - target) for size in (max(best - 1, 1), best, min(best + 1, 2**20))
    )
    assert len(asked) < 40


@pytest.fixture
def memory(monkeypatch):
    """Register a block `memory(N)` of 2 x N vectors, N from 0, during a test."""
    number = Parameter(name="N", kind="integer", low=0, high=4096, meaning="vectors")

    class Memory(Block):
        def __init__(self, *, width, causal, N):  # noqa: N803 -- as in recipes
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2 * N, width))

        def forward(self, x, mask=None):
            return x

    spec = Spec(
        name="memory",
        role=SA.role,
        parameters=(number,),
        summary="vectors",
        equation="x",
        source="the tests",
        reach=lambda settings, context: Reach(left=0, right=0),
        owner="the tests",
    )
    replace_entry(SPECS, spec.name, spec)
    replace_entry(BLOCKS, spec.name, Memory)


VARIANTS = TEXT.replace('"2 * ({mixer} >> ff({filter}))"', '"{body}"').replace(
    'mixer = "sa(heads=2, head_width=4)", filter = 64', 'body = "6 * memory(N={size})", size = 100'
)
VARIANTS = (
    VARIANTS[: VARIANTS.index("mixer =")]
    + """\
body = [
    "6 * memory(N={size})",
    "4 * (memory(N=10) >> ff({size}))",
    "3 * (memory(N={size}) + sa(heads=2, head_width=4))",
]
task = ["copy"]
"""
)


@pytest.mark.usefixtures("memory")
def test_variants_of_unlike_shape_have_equal_parameters():
    study = load_study(VARIANTS)
    assert [trial.settings.model.recipe for trial in study.trials] == [
        "6 * memory(N=100)",
        "4 * (memory(N=10) >> ff(135))",
        "3 * (memory(N=185) + sa(heads=2, head_width=4))",
    ]
    assert [study.size_matches[trial.id].costs[0].residual for trial in study.trials] == [0, 28, 0]
