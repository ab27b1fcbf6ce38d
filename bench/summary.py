"""What a study costs here beside what others would do, in one table: ours, theirs, the ratio, the machine.

Everything is measured in one run, and what is compared takes turns, so that a busy machine is busy for both.

python bench/summary.py [--cuda] [--write] [SECONDS a measurement]   # --write: into docs/performance.md
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
import hfta
import packs
import step
import torch

from activemem import __version__
from activemem.engine.core.cpu import prepare_cpu
from activemem.engine.graphs.graphable import GraphedTrainings, make_recordings
from activemem.engine.graphs.recorded_work import Recordings
from activemem.engine.packs.graphed_passes import GraphedPacks
from activemem.engine.trial import provenance
from activemem.engine.trial.precision import float32_products

DOCUMENT = Path(__file__).parents[1] / "docs" / "performance.md"
MARKS = {
    "cpu": "<!-- measured: python bench/summary.py --write -->",
    "cuda": "<!-- measured: python bench/summary.py --cuda --write -->",
}
END = "<!-- end -->"
TRIALS = 200
"""So many trials that do nothing."""

PACKS = (("sa(heads=4)", 16, 16), ("sa(heads=4)", 64, 8), ("conv(k=10)", 16, 16), ("conv(k=10)", 64, 8))
"""Mixer, width and number of trials that take their steps together."""

PACKS_ON_GPU = (*((mixer, width, 16) for mixer, width, _ in PACKS), ("sa(heads=4)", 128, 16))
"""The same where more of them fit."""


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


def steps(seconds: float, device: torch.device) -> Iterator[Row]:
    """Steps of training."""
    for recipe, beside, ours_ms, theirs_ms in step.compare(seconds, device):
        yield Row(f"a step of `{recipe}`", beside, ours_ms, theirs_ms)


def layers(seconds: float, device: torch.device) -> Iterator[Row]:
    """A layer of all-attention, at the sizes of the paper and of its program's small model."""
    size = attention.Size(1 if device.type == "cpu" else 8, 256, device.type)
    runners = attention.steps(size)
    if device.type == "cuda":
        runners["products"] = attention.by_products(runners["all_attn"])
    found = attention.median_ms(runners, seconds)
    what, ours_ms = f"`all_attn(N={attention.VECTORS})` behind {attention.SPAN} positions", found["all_attn"]
    yield Row(what, "its equations, over gathered keys and values", ours_ms, found["transcription"])
    yield Row(what, "`sa(pos=relative) >> ff` with as many parameters", ours_ms, found["sa >> ff"])
    if "products" in found:
        yield Row(what, "plain products instead of FlexAttention", ours_ms, found["products"])
    small = attention.Size(8, 256, device.type)
    for kind, adaptive, dropout in (
        ("", False, 0.0),
        (", learnt spans", True, 0.0),
        (", dropout", False, 0.1),
    ):
        pair = attention.beside_released(small, heads=4, adaptive=adaptive, dropout=dropout)
        found = attention.median_ms(pair, seconds)
        what = f"8 rows of `all_attn(N={attention.VECTORS}, heads=4)`, width 256{kind}"
        yield Row(what, "the layer of the released program", found["all_attn"], found["released"])
        if "multiplied" in found:
            yield Row(what, "what both multiply, nothing else", found["all_attn"], found["multiplied"])


def packed(rounds: int, device: torch.device) -> Iterator[Row]:
    """Steps of several trainings."""
    for mixer, width, trials in PACKS if device.type == "cpu" else PACKS_ON_GPU:
        trainings = [packs.make(mixer, width, 10, seed, device) for seed in range(trials)]
        hfta.check(trainings)
        found = packs.times_ms(trainings, rounds, {"by hand": hfta.fused_steps(trainings)})
        what = f"a step of {trials} trials of `{packs.recipe(mixer, width)}`, width {width}, in a pack"
        yield Row(what, "one by one", found["together"], found["alone"])
        yield Row(what, "HFTA's method, written by hand", found["together"], found["by hand"])


def recorded(seconds: float, device: torch.device, recordings: Recordings) -> Iterator[Row]:
    """Steps whose passes are replayed, of trials alone and in packs."""
    for recipe in step.RECIPES:
        loops = {
            "recorded": step.engine_loop(recipe, device, GraphedTrainings(recordings)),
            "plain": step.engine_loop(recipe, device),
        }
        found = step.median_step_ms(loops, seconds, device)
        yield Row(f"a step of `{recipe}`, recorded", "the same", found["recorded"], found["plain"])
    graphs = GraphedPacks(recordings)
    for mixer, width, trials in PACKS_ON_GPU:
        trainings = [packs.make(mixer, width, 10, seed, device) for seed in range(trials)]
        found = packs.times_ms(trainings, max(3, int(seconds)), graphs=graphs)
        what = (
            f"a step of {trials} trials of `{packs.recipe(mixer, width)}`, width {width}, in a pack, recorded"
        )
        yield Row(what, "the same", found["recorded"], found["together"])
        graphs.clear()


def trials() -> Iterator[Row]:
    """Trials that do nothing."""
    import overhead  # noqa: PLC0415 -- Ray, which nothing else needs

    from activemem.engine.run.ray_cluster import RAY_ENVIRONMENT  # noqa: PLC0415 -- as above

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


def machine(device: torch.device) -> str:
    """Where and with what it was measured, in a line."""
    now, place = datetime.now(UTC).date(), provenance.device_name(device)
    if device.type == "cpu":
        place += f" of {os.cpu_count()} cores"
    return f"activemem {__version__} ({provenance.commit()}), torch {torch.__version__}, {place}, {now}"


def table(seconds: float, device: torch.device) -> str:
    """The whole table, whose rows are printed as they come."""
    lines = ["| ours | beside | ours, ms | theirs, ms | ratio |", "| :-- | :-- | --: | --: | --: |"]
    for row in rows(seconds, device):
        lines.append(str(row))
        print(row, file=sys.stderr, flush=True)
    return "\n".join([*lines, "", machine(device)])


def rows(seconds: float, device: torch.device) -> Iterator[Row]:
    """All there is to measure, products in full precision; trials that do nothing are no matter of a GPU."""
    with float32_products("float32"):
        yield from steps(seconds, device)
        yield from layers(seconds, device)
        yield from packed(max(3, int(seconds)), device)
        if (recordings := make_recordings(device) if device.type == "cuda" else None) is not None:
            yield from recorded(seconds, device, recordings)
    if device.type == "cpu":
        yield from trials()


def main() -> None:
    """Measure, print, and write where it is asked for."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    prepare_cpu(1)  # as workers do: whoever is compared has it, too
    device = torch.device("cuda" if "--cuda" in sys.argv else "cpu")
    found = table(float(given[0]) if given else 20.0, device)
    print(found)
    if "--write" in sys.argv:
        before, after = re.escape(MARKS[device.type]), re.escape(END)
        text = DOCUMENT.read_text(encoding="utf-8")
        text, count = re.subn(f"({before}\n).*?({after})", rf"\1\n{found}\n\n\2", text, flags=re.DOTALL)
        assert count == 1, f"expected a mark in {DOCUMENT}"
        DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
