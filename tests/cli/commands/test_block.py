"""`activemem block verify`: a passport in lines and as JSON, and the exit status."""

import json

import pytest

from activemem.blocks.testing import references


@pytest.mark.heavy
def test_a_block_has_a_passport(run):
    found = run("block", "verify", "activation", "--json")
    assert found.exit_code == 0
    page = json.loads(found.stdout)
    assert (page["block"], page["against"], page["passed"]) == ("activation", None, True)
    assert [check["name"] for check in page["checks"]] == [
        *("outputs", "gradients", "steps", "initial weights", "no leak", "reach", "cost", "in training"),
    ]


@pytest.mark.heavy
def test_a_block_that_differs_from_its_equation_fails(run, monkeypatch):
    right = references._references["activation"]
    monkeypatch.setitem(
        references._references, "activation", lambda *given, **settings: 2 * right(*given, **settings)
    )
    found = run("block", "verify", "activation")
    assert found.exit_code == 1
    assert "  outputs          FAIL  Tensor-likes are not close!" in found.stdout
    assert "  cost             pass" in found.stdout


@pytest.mark.heavy
def test_a_layer_that_cannot_be_compared_has_a_word_and_an_exit_status_of_its_own(run):
    found = run("block", "verify", "activation", "--against", "torch.nn.PReLU")
    assert found.exit_code == 2
    assert "FAIL" not in found.stdout
    assert "weights as theirs  –     cannot be compared: the weights have no counterparts" in found.stdout


def test_names_that_are_not_blocks_of_one_sequence_are_rejected(run):
    for text, message in (
        ("neural_gpu", "expected a block that maps one sequence to another, got the transducer neural_gpu"),
        ("seq2seq", "got the transducer seq2seq"),
        ("sa >> ff(4)", "expected one block with all of its arguments, got sa >> ff(4)"),
        ("sas", "unknown block 'sas'"),
    ):
        refused = run("block", "verify", text)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert message in refused.stderr
