"""The long-term problems: the sum or product of two marked numbers among many."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from ....grammar.model_config import ModelInterface
from .spec import TaskInterface, TaskKind, TaskSettings, TaskSpec, add_own_task

TOLERANCE = 0.04
"""An answer within this distance is correct (Hochreiter and Schmidhuber 1997, section 5.4)."""


class LongTermSettings(TaskSettings):
    """Keys of `[task]` for the tasks recall_addition and recall_multiplication."""

    length: int = Field(default=50, ge=12)
    """the length of the shortest sequence; the longest sequence is 10 % longer"""
    variable: bool = False
    """whether each training batch has a random length from 50 to 10,000"""
    padding: Literal["masked", "read"] = "masked"
    """whether the zeros after shorter sequences of a batch are masked, or read like other inputs"""

    @property
    def length_range(self) -> tuple[int, int]:
        """The lengths of the shortest and the longest sequence."""
        return (50, 10_000) if self.variable else (self.length, self.length + self.length // 10)

    @property
    def interface(self) -> TaskInterface:
        tokens = sum(self.length_range) // 2
        return TaskInterface(model=ModelInterface(columns=2, targets=1), tokens=tokens)

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        if metric not in ("accuracy", "best_accuracy"):
            return None
        if self.name == "recall_addition":  # 0.5: the sum of both numbers is within 4 · TOLERANCE
            return 4 * TOLERANCE - 4 * TOLERANCE**2
        return 2 * TOLERANCE * (1 - math.log(2 * TOLERANCE))  # TOLERANCE: the product is up to twice as large

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        return ("accuracy", "best_accuracy")

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return ("solved_epochs",)


for _name, _range, _answer in (
    ("recall_addition", "[−1, 1]", "0.5 + (x₁ + x₂) / 4"),
    ("recall_multiplication", "[0, 1]", "x₁ · x₂"),
):
    add_own_task(
        TaskSpec(
            name=_name,
            kind=TaskKind.REGRESSION,
            summary=f"compute {_answer} from the two marked numbers of a sequence in {_range}",
            source="Hochreiter and Schmidhuber 1997, sections 5.4 and 5.5; Raffel and Ellis 2016",
            settings=LongTermSettings,
        )
    )
