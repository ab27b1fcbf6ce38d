"""Models with a bottleneck predict all from the last position: equal to plain loops, exact costs."""

import pytest
import torch
from torch.nn import functional

from activemem.blocks import BuildError, build
from activemem.blocks.core.block import StreamState
from activemem.blocks.testing.fixtures import count_flops, make_generator, saved_bytes
from activemem.grammar import analyse

from ..equations import common as references

RECIPE, LENGTH = "conv(k=3) >> ff(5)", 11
SETTINGS = {"d_model": 16, "vocab": 40, "causal": True, "bottleneck": True, "position": "none"}


def made(**settings):
    given = {**SETTINGS, "dropout": 0.0, **settings}
    return build(RECIPE, **given, generator=make_generator(0)).double().eval()


def tokens(length=LENGTH):
    return torch.randint(40, (2, length), generator=make_generator(1))


def test_each_position_is_decoded_from_the_last_one():
    model = made()
    with torch.no_grad():
        code = model.body(model.embedding(tokens()) * 4.0)[:, -1]
        y = code[:, None] + references.timing(LENGTH, 16)
        for norm, linear in zip(model.decoder.norms, model.decoder.maps, strict=True):
            y = torch.stack([references.norm(norm, row) for row in y])
            y = functional.gelu(y @ linear.weight.T + linear.bias)
        y = torch.stack([references.norm(model.norm, row) for row in y])
        expected = y @ model.output.weight.T + model.output.bias
    torch.testing.assert_close(model(tokens()), expected, rtol=1e-9, atol=1e-9)


def test_inputs_that_the_last_position_does_not_see_change_nothing():
    model, changed = made(), tokens()
    changed[:, : LENGTH - 3] = (changed[:, : LENGTH - 3] + 1) % 40
    assert model(changed).equal(model(tokens()))  # a filter of three taps
    changed[:, -1] = (changed[:, -1] + 1) % 40
    assert (model(changed) != model(tokens())).any(-1).all()


def test_a_padded_batch_gives_what_its_sequences_give_separately():
    model = made()
    outputs = model(tokens(), torch.tensor([LENGTH, 4]))
    torch.testing.assert_close(outputs[1, :4], model(tokens()[1:, :4])[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm_kind", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(("norm", "dropout"), [("pre", 0.1), ("post", 0.0), ("none", 0.1)])
def test_a_bottleneck_costs_what_its_analysis_says(norm, norm_kind, dropout):
    settings = {**SETTINGS, "norm": norm, "norm_kind": norm_kind, "dropout": dropout}
    model, stated = build(RECIPE, **settings), analyse(RECIPE, **settings, length=LENGTH)
    assert sum(parameter.numel() for parameter in model.parameters()) == stated.parameters
    kept = saved_bytes(model, batch=3, length=LENGTH)
    assert stated.memory(3).activations == pytest.approx(kept, rel=0.005, abs=12)
    counted = count_flops(lambda: model(tokens()))
    assert counted == pytest.approx(2 * stated.flops, rel=0.01)
    assert not stated.causal


def test_recipes_without_a_last_position_are_rejected(golden):
    with golden.raises(BuildError):
        build("ff(5) >> mean_pool", **SETTINGS)
    with golden.raises(BuildError):
        build("seq2seq(lstm, lstm)", **SETTINGS)
    with golden.raises(BuildError):
        made().forward_stream(tokens(), StreamState())
