"""The Neural GPU family: equal to references, dependencies, masks, costs, initial weights."""

import math

import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from activemem import build
from activemem.blocks import Context
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.core.transducer import build_transducer_block
from activemem.blocks.testing.fixtures import (
    WIDTH,
    make_generator,
    make_transducer,
    prefix_mask,
    random_sequences,
)
from activemem.blocks.testing.references import apply_reference
from activemem.blocks.transducers.neural_gpu import CGRUStack, ImageCGRU
from activemem.grammar import configure, parse

from ...quick_cases import one_in

NAMES = ["neural_gpu", "markov_neural_gpu", "extended_neural_gpu"]
RECIPES = [
    *NAMES,
    *(f"{name}(layers=1, width=2, maps=5, kernel=4)" for name in NAMES),
    "extended_neural_gpu(layers=1, width=1)",
    "extended_neural_gpu(layers=1, width=2, kernel=5)",
    "extended_neural_gpu(width=3, tape=all)",
    "extended_neural_gpu(layers=1, width=4, maps=3, kernel=4, tape=all)",
    *(f"{name}(layers=1, width=2, input_norm=true, first_unit=true)" for name in NAMES),
    "neural_gpu(layers=1, width=1, maps=5, kernel=4, input_norm=true)",
    "neural_gpu(layers=1, width=2, maps=5, kernel=4, first_unit=true)",
]
SHAPES = [(1, 1), (4, 4), (5, 2), (2, 5)]  # of source and target

every_model = pytest.mark.parametrize("name", NAMES)
every_recipe = pytest.mark.parametrize("text", RECIPES)


def pair(batch, source, target, **settings):
    return random_sequences(batch, source, seed=1, **settings), random_sequences(
        batch, target, seed=2, **settings
    )


def stepped(model, source, target, source_mask, lengths):
    """Return stepwise outputs, permuting rows after each step and undoing that at the end."""
    state, outputs = model.begin(source, source_mask, lengths), []
    for t in range(target.shape[1]):
        output, state = model.step(state, target[:, t])
        state = state.select_rows(torch.arange(len(source)))
        outputs.append(output)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize(
    ("text", "shape"),
    one_in(3, ((text, shape) for text in RECIPES for shape in (SHAPES if text in NAMES else SHAPES[2:]))),
)
def test_a_model_equals_its_reference(text, shape):
    model = make_transducer(text)
    source, target = pair(2, *shape)
    with torch.no_grad():
        pairs, node = zip(source, target, strict=True), parse(text).root
        expected = torch.stack([apply_reference(node, model, *rows) for rows in pairs])
        found = model(source, target)
    assert found.shape == (2, shape[1], model.output_width)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("text", "shape"),
    [(text, shape) for text in RECIPES for shape in (SHAPES if text in NAMES else SHAPES[2:])],
)
def test_steps_give_what_all_outputs_at_once_are(text, shape):
    model = make_transducer(text)
    source, target = pair(3, *shape)
    with torch.no_grad():
        found = stepped(model, source, target, None, torch.full((3,), shape[1]))
        torch.testing.assert_close(found, model(source, target), rtol=1e-10, atol=1e-10)


SOURCES, TARGETS = [6, 1, 2, 3, 4], [2, 5, 2, 1, 3]


@every_recipe
def test_a_padded_batch_gives_what_its_sequences_give_separately(text):
    model = make_transducer(text)
    source, target = pair(5, 6, 5)
    masks = prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5)
    with torch.no_grad():
        together = model(source, target, *masks)
        steps = stepped(model, source, target, masks[0], torch.tensor(TARGETS))
        for row, (n, m) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            alone = model(source[row : row + 1, :n], target[row : row + 1, :m])[0]
            torch.testing.assert_close(together[row, :m], alone, rtol=1e-11, atol=1e-11)
            torch.testing.assert_close(steps[row, :m], alone, rtol=1e-11, atol=1e-11)


@every_model
def test_values_at_padding_change_nothing(name):
    model = make_transducer(name)
    source, target = pair(5, 6, 5)
    masks = prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5)
    others = [
        torch.where(mask[..., None], x, 1e4 * random_sequences(5, x.shape[1], seed=9))
        for x, mask in zip((source, target), masks, strict=True)
    ]
    before, after = model(source, target, *masks), model(*others, *masks)
    assert before[masks[1]].equal(after[masks[1]])


@every_model
def test_one_mask_alone_is_that_mask_and_a_full_other(name):
    model = make_transducer(name)
    source, target = pair(5, 6, 5)
    masks, full = (
        (prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5)),
        (prefix_mask([6] * 5, 6), prefix_mask([5] * 5, 5)),
    )
    torch.testing.assert_close(
        model(source, target, masks[0], None), model(source, target, masks[0], full[1])
    )
    torch.testing.assert_close(
        model(source, target, None, masks[1]), model(source, target, full[0], masks[1])
    )
    torch.testing.assert_close(model(source, target, *full), model(source, target))


@every_model
def test_the_image_beyond_a_sequence_stays_zero(name):
    reader = make_transducer(name).reader
    source, target = pair(5, 6, 5)
    image, mask = reader(source, target, prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5))
    inside = prefix_mask([max(each) for each in zip(SOURCES, TARGETS, strict=True)], 6)
    assert mask[:, 0, :, 0].equal(inside.double())
    assert (image.permute(0, 2, 1, 3)[inside] != 0).all()
    assert (image.permute(0, 2, 1, 3)[~inside] == 0).all()


def moved(model, source, target, masks=(None, None)):
    """Return which outputs depend on which previous target: (target, outputs)."""
    before, rows = model(source, target, *masks), []
    for place in range(target.shape[1]):
        other = target.clone()
        other[:, place] += 1.0
        rows.append((model(source, other, *masks) != before).any(-1).all(0))
    return torch.stack(rows)


@pytest.mark.parametrize("masks", [(None, None), (prefix_mask([3, 7], 7), prefix_mask([7, 7], 7))])
def test_an_output_moves_none_the_next_or_all_later_ones(masks):
    source, target = pair(2, 7, 7)
    depends = {name: moved(make_transducer(name), source, target, masks) for name in NAMES}
    all_later = torch.ones(7, 7, dtype=torch.bool).triu()
    all_later[0] = False  # the start symbol is not written on the tape
    assert not depends["neural_gpu"].any()
    assert depends["markov_neural_gpu"].equal(torch.eye(7, dtype=torch.bool))
    assert depends["extended_neural_gpu"].equal(all_later)


@every_model
def test_every_symbol_of_the_source_moves_every_output(name):
    model = make_transducer(name)
    source, target = pair(1, 6, 6)
    before = model(source, target)
    for place in range(6):
        other = source.clone()
        other[:, place] += 1.0
        assert (model(other, target) != before).any(-1).all()


def test_where_outputs_are_written_on_the_tape_decides():
    source, target = pair(2, 4, 4)
    first, everywhere = (make_transducer(f"extended_neural_gpu(tape={tape})") for tape in ("first", "all"))
    everywhere.load_state_dict(first.state_dict())
    assert first(source, target)[:, 0].equal(everywhere(source, target)[:, 0])
    assert not first(source, target)[:, 1:].isclose(everywhere(source, target)[:, 1:]).any()


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize(
    "text",
    [f"{name}(layers=1, width=2, maps=2)" for name in NAMES] + ["extended_neural_gpu(width=2, tape=all)"],
)
def test_gradients_are_those_of_finite_differences(text, padded):
    model = make_transducer(text, width=3)
    source, target = (x.requires_grad_() for x in pair(2, 3, 3, width=3))
    masks = (prefix_mask([3, 1], 3), prefix_mask([1, 2], 3)) if padded else (None, None)
    names, values = zip(*model.named_parameters(), strict=True)

    def function(source, target, *values):
        y = functional_call(model, dict(zip(names, values, strict=True)), (source, target, *masks))
        return y[masks[1]] if padded else y

    assert torch.autograd.gradcheck(function, (source, target, *values), fast_mode=True)


@every_model
def test_kernels_begin_orthogonal_and_gates_open(name):
    model = build_transducer_block(
        parse(f"{name}(maps=7)").root,
        Context(config=configure(d_model=WIDTH, dropout=0.0)),
    )
    initialise(model, make_generator(0))
    units = [each for each in model.modules() if isinstance(each, ImageCGRU)]
    assert len(units) == (4 if name == "extended_neural_gpu" else 2)
    for unit in units:
        assert (unit.gates_bias == 1.0).all()
        assert (unit.candidate_bias == 0.0).all()
        tapes = [()] * 3 if unit.tape is None else [(tape,) for tape in unit.tape.chunk(3)]
        for weight, tape in zip((*unit.gates.chunk(2), unit.candidate), tapes, strict=True):
            rows = torch.cat([weight, *tape], -1).flatten(1)  # (maps, all that one of them sees)
            torch.testing.assert_close(rows @ rows.T, (1.8 * 0.8) ** 2 * torch.eye(7))


@every_model
def test_the_seed_alone_decides_how_a_model_begins(name):
    source, target = pair(2, 4, 4)
    state = torch.get_rng_state()
    one, same, other = (make_transducer(name, seed=seed)(source, target) for seed in (3, 3, 4))
    assert torch.get_rng_state().equal(state)
    assert one.equal(same)
    assert not one.equal(other)


@pytest.mark.parametrize(("length", "rate"), [(9, 0.1), (36, 0.05), (400, 0.015), (1, 0.3)])
def test_dropout_falls_with_the_root_of_the_length(length, rate):
    step = CGRUStack(layers=0, maps=100, kernel=3, dropout=0.1).train()
    torch.manual_seed(0)
    image = step(torch.ones(40_000 // length, 2, length, 100), None)
    assert (image == 0).float().mean().item() == pytest.approx(rate, rel=0.01)
    assert image.max().item() == pytest.approx(1 / (1 - rate), rel=1e-3)


def test_dropout_never_drops_more_than_nine_tenths():
    step = CGRUStack(layers=0, maps=100, kernel=3, dropout=0.9).train()
    torch.manual_seed(0)
    assert (step(torch.ones(100, 4, 1, 100), None) == 0).float().mean().item() == pytest.approx(0.9, rel=0.02)


@every_model
def test_dropout_acts_only_in_training(name):
    source, target = pair(2, 4, 4)
    model, plain = make_transducer(name, dropout=0.2), make_transducer(name)
    assert model(source, target).equal(plain.train()(source, target))
    model.train()
    assert not model(source, target).equal(model(source, target))


@pytest.mark.parametrize("maps", [0, 5])
@every_model
def test_under_autocast_the_image_keeps_its_precision(name, maps):
    model = make_transducer(f"{name}(maps={maps})", dtype=torch.float32)
    source, target = pair(2, 6, 5, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        image, _ = model.reader(source, target, None, None)
        found = model(source, target)
    assert image.dtype == torch.float32
    torch.testing.assert_close(found.float(), model(source, target), rtol=0.0, atol=0.1)
    found.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # inductor's own
@every_model
def test_the_compiled_model_gives_the_same(name):
    model = make_transducer(f"{name}(layers=1)", dtype=torch.float32)
    source, target = pair(3, 3, 2, dtype=torch.float32)  # steps are written out, which takes long
    masks = prefix_mask([3, 1, 2], 3), prefix_mask([1, 2, 2], 2)
    found = torch.compile(model, fullgraph=True)(source, target, *masks)
    torch.testing.assert_close(found[masks[1]], model(source, target, *masks)[masks[1]], rtol=1e-4, atol=1e-5)


def likelihood(name, *, steps):
    """Return the mean loss in nats per symbol after training on copying, or on adding one."""
    generator = make_generator(0)
    model = build(f"{name}(width=2)", d_model=24, source_vocab=10, vocab=11, dropout=0.0, generator=generator)
    optimiser, losses = torch.optim.Adam(model.parameters(), lr=2e-3), []
    for _ in range(steps):
        mask = torch.arange(8) < torch.randint(4, 9, (32, 1), generator=generator)
        source = torch.randint(1, 10, (32, 8), generator=generator) * mask
        target = (source + torch.randint(2, (32, 1), generator=generator)) * mask
        loss = cross_entropy(model(source, target)[mask], target[mask])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


@pytest.mark.slow
def test_the_less_outputs_depend_on_each_other_the_less_likely_are_those_that_do():
    plain, markov, extended = (likelihood(name, steps=400) for name in NAMES)
    assert plain == pytest.approx(math.log(2), abs=0.05)  # a coin for every symbol
    assert extended < 0.2  # a coin for the first symbol: between ln 2 / 8 and ln 2 / 4
    assert extended < markov < plain
