"""The generators against plain Python: targets, samples, seeds, precisions."""

import operator
from collections import Counter

import pytest
import torch

from activemem.engine.tasks.algorithmic import get_task, registered_tasks
from activemem.studies.catalog.tasks import TASKS, AlgorithmicTask, TaskError, task_names

ALGORITHMIC = [name for name in task_names() if isinstance(TASKS.get(name), AlgorithmicTask)]

GATES = {
    "and": lambda a, b: int(a and b),
    "nand": lambda a, b: int(not (a and b)),
    "or": lambda a, b: int(a or b),
    "nor": lambda a, b: int(not (a or b)),
    "xor": lambda a, b: int(a != b),
    "xnor": lambda a, b: int(a == b),
}


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def lengths(name):
    """Return lengths from the shortest, around limb boundaries, to operands far beyond 64 bits."""
    odd = get_task(name).spec.odd_lengths_only
    return (5, 7, 33, 35, 63, 65, 67, 105, 129, 131, 203, 301) if odd else (1, 2, 5, 6, 40, 104, 150)


def number(digits):
    return int("".join(map(str, digits)), 2)


def arithmetic(row, combine):
    half = len(row) // 2
    assert row[half] == 2
    return [
        int(digit) for digit in format(combine(number(row[:half]), number(row[half + 1 :])), f"0{len(row)}b")
    ]


def gated(name, row):
    answers = [1 if name in {"nand", "nor"} else 0] * len(row)
    for first in range(0, len(row) - 1, 2):
        answers[first] = GATES[name](row[first], row[first + 1])
    return answers


def reference(name, row):
    """Return the targets of one row of inputs by a slow, obvious method."""
    half = row[: len(row) // 2]
    if name in GATES:
        return gated(name, row)
    return {
        "copy": lambda: list(row),
        "reverse": lambda: row[::-1],
        "sort": lambda: sorted(row),
        "not": lambda: [1 if bit == 0 else 0 for bit in row],
        "remember": lambda: [0] * len(half) + half,
        "duplicate": lambda: half + half,
        "addition": lambda: arithmetic(row, operator.add),
        "multiply": lambda: arithmetic(row, operator.mul),
    }[name]()


def test_every_task_that_studies_know_has_a_generator_and_the_other_way_round():
    assert list(registered_tasks()) == ALGORITHMIC


@pytest.mark.parametrize(
    ("name", "length"), [(name, length) for name in ALGORITHMIC for length in lengths(name)]
)
def test_targets_equal_the_plain_reference(name, length):
    batch = get_task(name).batch(32, length, seeded(length))
    tokens = get_task(name).spec.sequence_length(length)
    assert batch.inputs.shape == batch.targets.shape == (32, tokens)
    assert batch.inputs.dtype == batch.targets.dtype == torch.int64
    assert batch.targets.tolist() == [reference(name, row) for row in batch.inputs.tolist()]


@pytest.mark.parametrize("name", ["addition", "multiply"])
def test_the_examples_of_the_paper_are_solved(name):
    task = get_task(name)
    given, answer = ([int(symbol) for symbol in text.split()] for text in task.spec.example[:2])
    assert task.solve(torch.tensor([given])).tolist() == [answer]


@pytest.mark.parametrize("name", ["addition", "multiply"])
def test_carries_run_through_the_whole_number(name):
    bits = 150
    nearly_full, one = [1] * (bits - 1) + [0], [0] * (bits - 1) + [1]
    rising = [0] + [1] * (bits - 1)
    rows = [[*a, 2, *b] for a in (nearly_full, one, rising) for b in (nearly_full, one, rising)]
    assert get_task(name).solve(torch.tensor(rows)).tolist() == [reference(name, row) for row in rows]


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_one_state_of_the_generator_gives_one_batch(name):
    generator = seeded(3)
    first, second = (get_task(name).batch(16, 21, generator) for _ in range(2))
    again = get_task(name).batch(16, 21, seeded(3))
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.targets, again.targets)
    assert not torch.equal(first.inputs, second.inputs)


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_the_draw_leaves_torchs_own_generator_alone(name):
    before = torch.random.get_rng_state()
    get_task(name).batch(4, 9, seeded())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("length", [1201, 1301, 4999])
@pytest.mark.parametrize("name", ALGORITHMIC)
def test_targets_are_exact_while_products_are_in_half_precision(name, length):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        batch = get_task(name).batch(4, length, seeded(length))
    assert batch.inputs.equal(get_task(name).batch(4, length, seeded(length)).inputs)
    assert batch.targets.tolist() == [reference(name, row) for row in batch.inputs.tolist()]


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_targets_own_their_memory(name):
    batch = get_task(name).batch(4, 9, seeded())
    kept = batch.targets.clone()
    batch.inputs.zero_()
    assert torch.equal(batch.targets, kept)


@pytest.mark.parametrize("vocab", [None, 30])
@pytest.mark.parametrize(("name", "length"), [("copy", 40), ("reverse", 40), ("sort", 40), ("remember", 20)])
def test_symbols_are_uniform_over_the_whole_vocabulary(name, length, vocab):
    drawn = get_task(name).batch(5000, length, seeded(), vocab=vocab).inputs[:, :length]
    vocab = vocab or get_task(name).spec.vocab
    share = torch.bincount(drawn.flatten(), minlength=vocab) / drawn.numel() * vocab
    assert share.shape == (vocab,)
    assert share.min() > 0.9
    assert share.max() < 1.1


@pytest.mark.parametrize("name", ["not", *GATES])
def test_bits_are_fair_at_every_position(name):
    share = get_task(name).batch(5000, 9, seeded()).inputs.double().mean(dim=0)
    assert ((share - 0.5).abs() < 0.03).all()


@pytest.mark.parametrize("name", ["remember", "duplicate"])
def test_zeros_are_where_the_answer_is_due(name):
    assert get_task(name).batch(32, 12, seeded()).inputs[:, 12:].count_nonzero() == 0


@pytest.mark.parametrize("name", ["addition", "multiply"])
@pytest.mark.parametrize("length", [5, 7, 9])
def test_operands_are_uniform_over_all_numbers_but_the_one_of_all_ones(name, length):
    half = length // 2
    rows = get_task(name).batch(4000, length, seeded(length)).inputs.tolist()
    counts = Counter(number(row[:half]) for row in rows) + Counter(number(row[half + 1 :]) for row in rows)
    assert sorted(counts) == list(range(2**half - 1))
    expected = 8000 / (2**half - 1)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_operands_are_drawn_independently():
    rows = get_task("addition").batch(9000, 5, seeded()).inputs.tolist()
    counts = Counter((number(row[:2]), number(row[3:])) for row in rows)
    assert len(counts) == 9
    assert all(850 < count < 1150 for count in counts.values())


def test_a_wrong_name_or_length_is_refused():
    with pytest.raises(TaskError) as caught:
        get_task("additon")
    assert str(caught.value) == "unknown task 'additon'; nearest: addition"
    with pytest.raises(TaskError) as caught:
        get_task("addition").batch(32, 40, seeded())
    assert str(caught.value).endswith("for addition, got 40")
