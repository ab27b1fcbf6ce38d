"""Bounds on the cost of a model.

Members of a space that exceed them are left out before anything is built.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import argument_fault, check_arguments, number_fault
from ..analysis.analyse import analyse, count_parameters
from ..model_config import ModelConfig, Norm
from ..recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most parameters, and the most operations of a forward pass over one sequence, embedding included.

    The operations depend on `length`, the parameters do not. None sets no bound.
    """

    max_parameters: int | None = None
    max_flops: int | None = None
    d_model: int
    vocab: int
    length: int = 1
    causal: bool = False
    norm: Norm = "pre"

    def __post_init__(self) -> None:
        check_arguments(
            number_fault("max_parameters", self.max_parameters, least=0, optional=True),
            number_fault("max_flops", self.max_flops, least=0, optional=True),
            *(number_fault(name, getattr(self, name), least=1) for name in ("d_model", "vocab", "length")),
            argument_fault("causal", self.causal, bool, "True or False"),
            argument_fault("norm", self.norm, str, "a word"),
        )

    def admits(self, recipe: Recipe) -> bool:
        """Return whether the model is within both bounds.

        Raises RecipeError for a recipe with open dimensions.
        """
        config = ModelConfig(d_model=self.d_model, vocab=self.vocab, causal=self.causal, norm=self.norm)
        if self.max_parameters is not None and count_parameters(recipe, config) > self.max_parameters:
            return False
        return self.max_flops is None or analyse(recipe, config, length=self.length).flops <= self.max_flops
