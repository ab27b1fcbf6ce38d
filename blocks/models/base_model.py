"""The base class of all models.

A model has a recipe, the settings outside the recipe, and the blocks of its body.
"""

from __future__ import annotations

from functools import cached_property
from typing import Generic, TypeVar

from torch import Tensor, nn

from ...grammar import ModelConfig, Recipe
from ..core.block import Block
from ..core.dropout import Dropout
from ..layers.window_attention import WindowedBlock, update_spans

Body = TypeVar("Body", bound=nn.Module)


class BaseModel(nn.Module, Generic[Body]):
    """A model built from a recipe and a configuration.

    Subclasses define the `body` and the layers around it.
    """

    body: Body

    def __init__(self, recipe: Recipe, config: ModelConfig) -> None:
        super().__init__()
        self.recipe = recipe
        self.config = config
        self.dropout = Dropout(config.settings.embedding_dropout)
        self.register_load_state_dict_post_hook(_after_load)

    def __repr__(self) -> str:
        return self.recipe.text

    def after_optimiser_step(self) -> None:
        """Notify the blocks that an optimiser step has changed the weights."""
        if not self._notified_blocks:
            return
        windows = [block for block in self._notified_blocks if isinstance(block, WindowedBlock)]
        update_spans(windows)
        for block in self._notified_blocks:
            if not isinstance(block, WindowedBlock):
                block.after_optimiser_step()

    def penalty(self) -> Tensor | None:
        """Return the sum of the terms that blocks add to the loss; None if no block adds one."""
        terms = [term for block in self._blocks() if (term := block.penalty()) is not None]
        return sum(terms[1:], start=terms[0]) if terms else None

    @cached_property
    def _notified_blocks(self) -> list[Block]:
        nothing = Block.after_optimiser_step
        return [block for block in self._blocks() if type(block).after_optimiser_step is not nothing]

    def _blocks(self) -> list[Block]:
        return [module for module in self.body.modules() if isinstance(module, Block)]


def find_places(chosen: Tensor) -> Tensor:
    """Return the flat indices of true values in a mask (batch, length).

    A mask on a GPU forces a synchronisation, so it should be on the host.
    """
    return chosen.flatten().nonzero().squeeze(1)


def take_places(rows: Tensor, places: Tensor) -> Tensor:
    """Return the rows (chosen, …) of a tensor (batch, length, …) at the flat indices `places`."""
    return rows.flatten(0, 1).index_select(0, places)


def fill_places(values: Tensor, places: Tensor, like: Tensor) -> Tensor:
    """Return zeros (batch, length) with `values` (chosen,) at the flat indices `places`."""
    return values.new_zeros(like.numel()).scatter(0, places, values).view(like.shape)


def _after_load(model: nn.Module, _found: object) -> None:
    assert isinstance(model, BaseModel)
    model.after_optimiser_step()
