"""The one-at-a-time design: the baseline, and every cell that differs from the baseline in one factor."""

from ..schema.design import Design
from ..schema.settings import Level


class OneAtATime(Design):
    """A design with the baseline, and with every cell that differs from the baseline in one factor."""

    title = "the baseline, and every cell that differs from it in one factor"

    def make_rows(self) -> list[dict[str, Level]]:
        start = {name: self.baseline_level(name) for name in self.inner}
        return [start, *({**start, name: level} for name in self.inner for level in self.inner[name])]

    def explain_kind(self) -> str:
        return (
            "the baseline, and every change of one factor; it estimates single changes, not their "
            "interactions"
        )


DESIGN = OneAtATime
