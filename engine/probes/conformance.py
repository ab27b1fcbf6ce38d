"""Conformance checks of built-in probes and of probes from plug-ins.

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_probe_conforms(check):
        check("my_probe")

A check takes the name of a probe and raises AssertionError if it breaks its contract. It runs for each kind
of task of the probe, on a small untrained model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from ...blocks import build
from ...studies.catalog.metrics import PROBES
from ...studies.catalog.tasks import Examples, TaskKind
from .registered_probes import run_probe

_VOCAB = 7

_BODIES = {
    TaskKind.REGRESSION: ("sa(heads=2) >> ff(9) >> mean_pool", {"vocab": _VOCAB, "targets": 1}),
    TaskKind.CLASSIFICATION: ("sa(heads=2) >> ff(9) >> mean_pool", {"vocab": _VOCAB, "classes": 3}),
    TaskKind.TOKEN_CLASSIFICATION: ("sa(heads=2) >> ff(9)", {"vocab": _VOCAB, "classes": 3}),
    TaskKind.TRANSDUCTION: ("seq2seq(lstm, lstm)", {"vocab": _VOCAB}),
    TaskKind.LANGUAGE: ("conv(k=3) >> ff(9)", {"vocab": _VOCAB, "causal": True}),
    TaskKind.CAUSAL_TAGGING: ("conv(k=3) >> ff(9)", {"vocab": _VOCAB, "causal": True}),
    TaskKind.TAGGING: ("sa(heads=2) >> ff(9)", {"vocab": _VOCAB}),
}


def numbers_are_measured(name: str) -> None:
    """Check that a probe returns at least one number, and that all its numbers are finite and have names."""
    for kind in _kinds(name):
        _measure(name, _model(kind), kind)


def measured_again_it_is_the_same(name: str) -> None:
    """Check that a second measurement gives the same numbers.

    The random seed is different, the model and the batches are the same.
    """
    for kind in _kinds(name):
        model = _model(kind)
        torch.manual_seed(1)
        first = _measure(name, model, kind)
        torch.manual_seed(2)
        assert _measure(name, model, kind) == first, (
            f"{kind.name.lower()}: a second measurement of the same model differs"
        )


def model_is_left_alone(name: str) -> None:
    """Check that a probe leaves the model unchanged: the weights, evaluation mode, and no hooks."""
    for kind in _kinds(name):
        model = _model(kind)
        before = {path: weight.clone() for path, weight in model.state_dict().items()}
        _measure(name, model, kind)
        changed = [path for path, weight in model.state_dict().items() if not weight.equal(before[path])]
        assert not changed, f"expected unchanged weights, got changes in {', '.join(changed)}"
        assert not model.training, "the model is in training mode"
        # torch has no public list of a module's hooks
        hooks = [getattr(module, "_forward_hooks", ()) for module in model.modules()]
        assert not any(hooks), "a hook was not removed"


CHECKS: tuple[Callable[[str], None], ...] = (
    numbers_are_measured,
    measured_again_it_is_the_same,
    model_is_left_alone,
)
"""Every check; each is called as `check(name)`."""


def _kinds(name: str) -> list[TaskKind]:
    return sorted(PROBES[name].kinds, key=lambda kind: kind.name)


def _measure(name: str, model: nn.Module, kind: TaskKind) -> dict[str, float]:
    return run_probe(PROBES[name], model, _batches(kind))


def _model(kind: TaskKind) -> nn.Module:
    text, settings = _BODIES[kind]
    return build(text, d_model=8, **settings, generator=torch.Generator().manual_seed(1)).eval()


def _batches(kind: TaskKind) -> Iterator[Examples]:
    """Yield example batches of different shapes for a kind of task, padded if the kind has padding."""
    generator = torch.Generator().manual_seed(3)
    for rows, tokens in ((4, 6), (4, 5), (2, 3)):
        inputs = torch.randint(1, _VOCAB, (rows, tokens), generator=generator)
        lengths = torch.randint(2, tokens + 1, (rows,), generator=generator)
        match kind:
            case TaskKind.TRANSDUCTION:
                yield Examples(inputs, inputs.flip(1))
            case TaskKind.REGRESSION:
                yield Examples(inputs, inputs[:, :1].float(), lengths)
            case TaskKind.CLASSIFICATION:
                yield Examples(inputs, inputs[:, 0] % 3, lengths)
            case TaskKind.TOKEN_CLASSIFICATION:
                yield Examples(inputs, inputs % 3, lengths)
            case _:
                yield Examples(inputs, inputs.flip(1), lengths)
