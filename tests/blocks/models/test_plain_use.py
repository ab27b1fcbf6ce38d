"""A built model without the rest of this package: a plain training loop, files, pickles."""

import pickle
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from activemem import build, conv, ff, highway_conv, integer, sa
from activemem.blocks import BuildError
from activemem.blocks.testing.fixtures import make_generator

RECIPE = 2 * (sa(heads=2, head_width=4) + highway_conv(k=5) >> ff(16))
SIZES = {"d_model": 12, "vocab": 7}


def trained(recipe, steps=30):
    """Return a model after a plain training loop, its losses, and a batch."""
    model = build(recipe, **SIZES, dropout=0.1, generator=make_generator(0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    tokens = torch.randint(7, (8, 6), generator=make_generator(1))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flip(1).flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model.eval(), losses, tokens


def test_an_expression_is_built_trained_saved_and_built_again(tmp_path):
    model, losses, tokens = trained(RECIPE)
    assert isinstance(model, nn.Module)
    assert losses[-1] < 0.5 * losses[0]
    assert repr(model) == "2 * (sa(heads=2, head_width=4) + highway_conv(k=5) >> ff(16))"

    kept = {"recipe": repr(model), "sizes": SIZES, "weights": model.state_dict()}
    torch.save(kept, tmp_path / "model.pt")
    read = torch.load(tmp_path / "model.pt", weights_only=True)
    again = build(read["recipe"], **read["sizes"])
    again.load_state_dict(read["weights"])
    assert again.eval()(tokens).equal(model(tokens))


def test_a_pickled_model_keeps_its_text_and_its_weights():
    model, _, tokens = trained(RECIPE, steps=1)
    again = pickle.loads(pickle.dumps(model))
    assert repr(again) == repr(model)
    assert again.recipe == RECIPE
    assert again(tokens).equal(model(tokens))


def test_an_expression_and_its_text_are_the_same_model():
    one, other = (build(recipe, **SIZES, generator=make_generator(3)) for recipe in (RECIPE, RECIPE.text))
    for mine, its in zip(one.state_dict().items(), other.state_dict().items(), strict=True):
        assert mine[0] == its[0]
        assert mine[1].equal(its[1])


def test_a_block_by_itself_is_a_model():
    assert repr(build(sa, **SIZES)) == "sa"


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (conv, "conv needs k, as in conv(k=…)"),
        (integer(1, 3), "integer can only replace a number: a count, or a parameter's value"),
    ],
    ids=repr,
)
def test_an_invalid_expression_has_the_error_of_its_text(recipe, message):
    with pytest.raises(ValueError) as caught:
        build(recipe, **SIZES)
    assert [fault.message for fault in caught.value.faults] == [message]


def test_an_open_expression_cannot_be_built():
    with pytest.raises(
        BuildError, match=r"^recipe 'conv\(k=integer\(1, 3\)\)' cannot be built\n  search dimens"
    ):
        build(conv(k=integer(1, 3)), **SIZES)


def test_a_forward_pass_enters_few_functions_of_ours():
    model, _, tokens = trained(RECIPE, steps=1)
    package, entered = str(Path(sys.modules[type(model).__module__].__file__).parents[1]), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            entered.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        model.train()(tokens)
    finally:
        sys.setprofile(None)
    assert 20 < len(entered) <= 100, entered
