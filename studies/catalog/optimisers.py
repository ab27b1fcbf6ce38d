"""The optimisers by the names of `train.optimizer`: a new one needs nothing but an entry here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """A rule that moves the weights: its class, and the keys of `train.optimizer` that are passed on to it.

    `path` is "module:class", loaded only where a model is trained. A `fused` one makes one pass over all
    weights a step.
    """

    name: str
    path: str
    keys: tuple[str, ...] = ("lr", "betas", "eps", "weight_decay")
    fused: bool = True


OPTIMIZERS = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer(name="adam", path="torch.optim:Adam"),
        Optimizer(name="adamw", path="torch.optim:AdamW"),
        Optimizer(
            name="adagrad", path="torch.optim:Adagrad", keys=("lr", "eps", "weight_decay"), fused=False
        ),
        Optimizer(name="sgd", path="torch.optim:SGD", keys=("lr", "weight_decay")),
    )
}
"""Every optimiser by its name."""
