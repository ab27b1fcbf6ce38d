"""The curriculum of Kaiser and Sutskever (2016): the length grows whenever a fresh batch is wholly right."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True, kw_only=True)
class Curriculum:
    """The length in training, and the highest length that has been passed (0 before the first)."""

    length: int
    step: int
    grow_at: float
    passed: int = 0

    def record(self, accuracy: float) -> None:
        """Take an evaluation at the current length; grow if its accuracy, a fraction of tokens, suffices."""
        if accuracy >= self.grow_at:
            self.passed = self.length
            self.length += self.step

    def state(self) -> dict[str, float]:
        """Everything needed to go on, as plain numbers."""
        return asdict(self)
