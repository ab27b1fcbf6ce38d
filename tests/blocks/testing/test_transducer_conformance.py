"""Conformance of every transducer, of the model around it, and errors for rejected recipes."""

from dataclasses import replace

import pytest
import torch

from activemem import build
from activemem.blocks import BuildError
from activemem.blocks.core.transducer import register_transducer
from activemem.blocks.models.model import PAD, shift_right
from activemem.blocks.testing.fixtures import make_generator
from activemem.blocks.transducers.seq2seq import Seq2Seq
from activemem.grammar import Role, lookup, parse
from activemem.grammar.vocabulary.spec import SPECS, builtin_names

from ...registry_entries import replace_entry
from .transducer_conformance import (
    TRANSDUCER_CHECKS,
    flops_are_counted,
    gpu_gives_the_same,
    gradients_are_right,
    training_memory_is_stated,
)

RECIPES = [
    "seq2seq(lstm, lstm)",
    "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
    "seq2seq(lstm(layers=2), lstm(layers=2), attention=luong, attend=inputs, positions=3)",
    "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau, feed=true, units=11)",
    "seq2seq(lstm(layers=2), lstm(layers=2), attention=luong, feed=true)",
    "seq2seq(gru, gru, attention=luong, attend=inputs, feed=true)",
    "seq2seq(lstm, lstm, units=5)",
    "seq2seq(sa(heads=2, head_width=3) >> ff(8), gru, attention=luong)",
    "seq2seq(gru, 2 * (sa(heads=2, head_width=3) >> ff(8)))",
    "seq2seq(2 * (conv(k=3) >> ff(8)), tied(2 * (sa(heads=1, head_width=4) + cgru(k=3) >> ff(8))))",
    "seq2seq(persistent_conv(k=3) >> ff(8), persistent_conv(k=3) >> lstm >> persistent_conv(k=3))",
    "seq2seq(all_attn(N=3, span=4, heads=2, head_width=3), 2 * all_attn(N=3, span=3, heads=2, head_width=3))",
    "neural_gpu(layers=1, width=2)",
    "markov_neural_gpu(layers=1, width=2)",
    "extended_neural_gpu(layers=1, width=2)",
    "neural_gpu(layers=1, width=2, maps=5, input_norm=true, first_unit=true)",
    "extended_neural_gpu(layers=1, width=2, input_norm=true, first_unit=true)",
]

SIMPLER = {RECIPES[number] for number in (0, 1, 4, 5, 12, 14)}
"""Recipes whose features all occur in another recipe, so that they are tested less often."""

SLOW = (training_memory_is_stated, flops_are_counted, gradients_are_right)
"""Slow checks, which the quick suite makes of one in two recipes."""


def model(text, *, source_vocab=6, vocab=9, d_model=8, **settings):
    sizes = {"d_model": d_model, "source_vocab": source_vocab, "vocab": vocab}
    return build(text, **sizes, generator=make_generator(1), **settings)


def tokens(vocab, lengths, *, seed):
    """Return symbols from 1 on, padded with 0: (len(lengths), longest)."""
    found = torch.randint(1, vocab, (len(lengths), max(lengths)), generator=make_generator(seed))
    return found * (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])


def test_every_transducer_of_the_vocabulary_is_among_the_recipes():
    names = {name for name in builtin_names() if lookup(name).role is Role.TRANSDUCER}
    assert {parse(text).root.name for text in RECIPES} == names


@pytest.mark.parametrize(
    ("check", "text"),
    [
        pytest.param(
            check, text, marks=[pytest.mark.heavy] * (text in SIMPLER or (check in SLOW and place % 2 == 0))
        )
        for check in TRANSDUCER_CHECKS
        for place, text in enumerate(RECIPES)
    ],
)
def test_every_transducer_passes_every_check(check, text):
    check(text)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("text", RECIPES)
def test_a_gpu_gives_the_same(text):
    gpu_gives_the_same(text)


@pytest.mark.parametrize("text", RECIPES)
def test_the_score_of_a_target_step_by_step_is_that_of_teacher_forcing(text):
    made = model(text, embedding="unit", embedding_dropout=0.3).double().eval()
    source, target = tokens(6, [5, 2, 4], seed=1), tokens(9, [2, 6, 4], seed=2)
    lost = made.nll(source, target)
    assert lost.shape == target.shape
    assert (lost[target == PAD] == 0).all()
    assert (lost[target != PAD] > 0).all()
    state, previous = made.begin(source, (target != PAD).sum(1)), torch.full((3,), PAD)
    for place in range(6):
        logits, state = made.step(state, previous)
        valid, previous = target[:, place] != PAD, target[:, place]
        scores = -torch.log_softmax(logits, -1).gather(1, previous[:, None])[:, 0]
        torch.testing.assert_close(scores[valid], lost[valid, place])


def test_a_symbol_is_predicted_from_earlier_symbols_and_the_start():
    assert shift_right(torch.tensor([[3, 4, 5], [6, 0, 0]])).tolist() == [[PAD, 3, 4], [PAD, 6, 0]]


def test_the_model_shows_its_recipe_and_is_restored_from_its_weights():
    made, other = model("seq2seq(lstm,lstm)"), model("seq2seq(lstm,lstm)", d_model=8)
    assert repr(made) == "seq2seq(lstm, lstm)"
    assert made.source.weight.shape == (6, 8)
    assert made.target.weight.shape == made.output.weight.shape == (9, 8)
    other.load_state_dict(made.state_dict())
    pair = tokens(6, [4], seed=1), tokens(9, [5], seed=2)
    assert made.eval()(*pair).equal(other.eval()(*pair))


def test_blocks_take_note_of_steps_and_of_loaded_weights_and_add_to_the_loss():
    text = "all_attn(N=3, span=128, heads=2, head_width=3, adaptive=true, ramp=8)"
    made, other = model(f"seq2seq({text}, {text})"), model(f"seq2seq({text}, {text})")
    memories = [[block.context_length for block in one._blocks()] for one in (made, other)]
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith("spans.z"):
                parameter.fill_(2.0)
    made.after_optimiser_step()
    other.load_state_dict(made.state_dict())
    assert memories == [[64, 64], [64, 64]]
    assert [[block.context_length for block in one._blocks()] for one in (made, other)] == [[128, 128]] * 2
    assert made.penalty().item() == pytest.approx(2 * 128)
    assert model("seq2seq(lstm, lstm)").penalty() is None


def test_models_that_cannot_be_built_are_reported_at_once(golden):
    with golden.raises(BuildError):
        model("sa >> ff({filter})", source_vocab=0, dropout=1.0)


def test_a_name_is_taken_once(golden):
    class Other(Seq2Seq):
        pass

    with golden.raises(ValueError):
        register_transducer("seq2seq")(Other)


def test_a_transducer_without_a_module_cannot_be_built(monkeypatch, golden):
    spec = replace(lookup("seq2seq"), name="told", owner="the tests")
    replace_entry(SPECS, "told", spec)
    with pytest.raises(BuildError) as caught:
        model("told(lstm, lstm)")
    golden(str(caught.value))
