"""The error for a wrong recipe; its message shows the text with all faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..errors import (
    MAX_FAULTS,
    MAX_SHOWN_IN_LINE,
    MAX_UNCUT_WIDTH,
    ActivememError,
    Fault,
    draw_carets,
    printable,
)


class RecipeError(ActivememError):
    """Error with the text of a wrong recipe and all of its faults, in the order of the text.

    The message shows the text and the first 10 faults, and stays readable whatever characters the text has:

        recipe: 1 fault

            sa(head=8)
          1    ^^^^      sa has no parameter 'head'; nearest: heads
    """

    def __init__(self, text: str, faults: Iterable[Fault]) -> None:
        self.text = text
        self.faults = tuple(sorted(faults, key=lambda fault: fault.sort_key))
        super().__init__(text, self.faults)  # both, so that the error can be pickled

    def __str__(self) -> str:
        count = len(self.faults)
        least = "at least " if count >= MAX_FAULTS else ""
        heading = f"recipe: {least}{count} {'fault' if count == 1 else 'faults'}"
        shown = self.faults[:MAX_SHOWN_IN_LINE]
        more = [f"    and {count - len(shown)} more"] if count > len(shown) else []
        return "\n".join([heading, "", *_format_faults(self.text, shown), *more])


def _format_faults(text: str, faults: Sequence[Fault]) -> Iterator[str]:
    """Yield the lines of a message; of a long text, only those around faults."""
    drawn = [draw_carets(text, fault.start, fault.end) for fault in faults]
    fits = len(text) <= MAX_UNCUT_WIDTH
    if fits:
        yield f"    {printable(text)}".rstrip()
    width = max(len(text), *(len(carets) for _, carets in drawn))
    for number, (fault, (excerpt, carets)) in enumerate(zip(faults, drawn, strict=True), 1):
        if not fits:
            yield f"    {excerpt}".rstrip()
            width = max(len(excerpt), len(carets))
        yield f"{number:>3} {carets:<{width}}   {fault.message}"
