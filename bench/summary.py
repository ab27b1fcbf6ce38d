"""What a study costs here beside what others would do, in one table: ours, theirs, the ratio, the machine.

Everything is measured in one run, and what is compared takes turns, so that a busy machine is busy for both.

python bench/summary.py [--write] [SECONDS a measurement]   # --write: into docs/performance.md
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import attention
import overhead
import packs
import step
import torch

from activemem import __version__
from activemem.engine.run.ray_cluster import RAY_ENVIRONMENT
from activemem.engine.trial import provenance

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
MARK = re.compile(r"(<!-- measured: python bench/summary.py --write -->\n).*?(<!-- end -->)", re.DOTALL)
TRIALS = 200
"""So many trials that do nothing."""

PACKS = (("sa(heads=4)", 16, 16), ("sa(heads=4)", 64, 8), ("conv(k=10)", 16, 16), ("conv(k=10)", 64, 8))
"""Mixer, width and number of trials that take their steps together."""


class Row(NamedTuple):
    """What is measured, what beside, and the milliseconds of both."""

    what: str
    beside: str
    ours_ms: float
    theirs_ms: float

    def __str__(self) -> str:
        """The row of a Markdown table."""
        ratio = self.ours_ms / self.theirs_ms
        return f"| {self.what} | {self.beside} | {self.ours_ms:.3g} | {self.theirs_ms:.3g} | {ratio:.2f} |"


def steps(seconds: float) -> Iterator[Row]:
    """Steps of training."""
    for recipe, beside, ours_ms, theirs_ms in step.compare(seconds):
        yield Row(f"a step of `{recipe}`", beside, ours_ms, theirs_ms)


def layers(seconds: float) -> Iterator[Row]:
    """A layer of all-attention."""
    found = attention.median_ms(attention.steps(attention.Size(1, 256, "cpu")), seconds)
    what, ours_ms = f"`all_attn(N={attention.VECTORS})` behind {attention.SPAN} positions", found["all_attn"]
    yield Row(what, "its equations, over gathered keys and values", ours_ms, found["transcription"])
    yield Row(what, "`sa(pos=relative) >> ff` with as many parameters", ours_ms, found["sa >> ff"])


def packed(rounds: int) -> Iterator[Row]:
    """Steps of several trainings."""
    for mixer, width, trials in PACKS:
        trainings = [packs.make(mixer, width, 10, seed) for seed in range(trials)]
        alone_ms, together_ms = packs.times_ms(trainings, rounds)
        what = f"a step of {trials} trials of `4 * ({mixer} >> ff({2 * width}))`, width {width}, in a pack"
        yield Row(what, "one by one", together_ms, alone_ms)


def trials() -> Iterator[Row]:
    """Trials that do nothing."""
    os.environ.update(RAY_ENVIRONMENT)
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alone_ms, _, _ = overhead.in_process(folder / "alone", TRIALS)
        disk_ms = overhead.fsyncs(TRIALS, folder / "disk")
        ray_ms = overhead.on_ray(TRIALS, folder / "ray")
        bare_ms = overhead.bare_tune(TRIALS // 8, folder / "bare")
    yield Row(
        "an empty trial in a worker, claimed and stored", "bare Ray Tune, actors reused", alone_ms, bare_ms
    )
    yield Row("an empty trial on Ray, the start of workers included", "the same", ray_ms, bare_ms)
    yield Row(
        "an empty trial in a worker", "what the disk takes to make its files durable", alone_ms, disk_ms
    )


def machine() -> str:
    """Where and with what it was measured, in a line."""
    now = datetime.now(UTC).date()
    return (
        f"activemem {__version__} ({provenance.commit()}), torch {torch.__version__}, "
        f"{provenance.device_name(torch.device('cpu'))} of {os.cpu_count()} cores, {now}"
    )


def table(seconds: float) -> str:
    """The whole table."""
    rows = [*steps(seconds), *layers(seconds), *packed(max(3, int(seconds))), *trials()]
    head = ["| ours | beside | ours, ms | theirs, ms | ratio |", "| :-- | :-- | --: | --: | --: |"]
    return "\n".join([*head, *map(str, rows), "", machine()])


def main() -> None:
    """Measure, print, and write where it is asked for."""
    given = [each for each in sys.argv[1:] if each != "--write"]
    torch.set_num_threads(1)
    found = table(float(given[0]) if given else 20.0)
    print(found)
    if "--write" in sys.argv:
        text, count = MARK.subn(rf"\1\n{found}\n\n\2", DOCUMENT.read_text(encoding="utf-8"))
        assert count == 1, f"expected a mark in {DOCUMENT}"
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
