"""Tables of our times, the times of alternatives and their ratios, with a description of the machine.

python bench/summary.py [--cuda] [--write] [--tiny] [SECONDS a measurement]

Everything is measured in one run, and compared implementations alternate, so that other load affects both. A
failed measurement is reported in its row, and the exit status is then 1. `--write` puts the tables into
docs/results/speed.md: one beside code of others, and one beside our own code and lower bounds. `--tiny` runs
the code of the GPU measurements on a CPU, without figures.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import NamedTuple

import attention
import chunked
import step
import torch

from activemem import __version__
from activemem.engine.core.models import float32_products
from activemem.engine.core.process import prepare_cpu
from activemem.engine.trial import outcome
from activemem.engine.trial.failures import free_memory
from activemem.reporting.tables.render.markdown import escape

DOCUMENT = Path(__file__).parents[1] / "docs" / "results" / "speed.md"
MARKS = {
    "cpu": "<!-- measured: python bench/summary.py --write -->",
    "cuda": "<!-- measured: python bench/summary.py --cuda --write -->",
}
"""Above the tables beside code of others, for each device."""

BOUND_MARKS = {
    "cpu": "<!-- measured, bounds: python bench/summary.py --write -->",
    "cuda": "<!-- measured, bounds: python bench/summary.py --cuda --write -->",
}
"""Above the tables beside our own code and lower bounds, for each device."""

END = "<!-- end -->"
LAYER = f"`all_attn(N={attention.VECTORS})` behind {attention.SPAN} positions"
HEADER = ("| ours | compared with | ours, ms | theirs, ms | ratio |", "| :-- | :-- | --: | --: | --: |")
TRIALS = 200
"""The number of empty trials."""


class Row(NamedTuple):
    """A row of a table: what was measured, the alternative beside it, and the milliseconds of both.

    With `is_bound`, the alternative is our own code or a lower bound, not a program of others.
    """

    what: str
    beside: str
    ours_ms: float
    theirs_ms: float
    is_bound: bool = False

    def __str__(self) -> str:
        """Return the row in Markdown."""
        ratio = self.ours_ms / self.theirs_ms
        return f"| {self.what} | {self.beside} | {self.ours_ms:.3g} | {self.theirs_ms:.3g} | {ratio:.2f} |"


Measure = Callable[[], Iterable[Row]]
"""A function that measures some rows."""


def step_row(what: step.Comparison, seconds: float, device: torch.device) -> Iterator[Row]:
    """Measure a training step."""
    yield Row(what.what, what.beside, *step.compare(what, seconds, device))


class ConvolutionSize(NamedTuple):
    """The size of a convolution over long sequences."""

    batch: int
    length: int
    causal: bool

    @property
    def what(self) -> str:
        """Return what is measured, in Markdown."""
        kind = "causal, " if self.causal else ""
        return f"`conv(k=20)`, {kind}width {step.WIDTH}, batch {self.batch}, length {self.length}"


def convolution_rows(size: ConvolutionSize, seconds: float, device: torch.device) -> Iterator[Row]:
    """Measure the forward and backward pass of a convolution."""
    ours = attention.make_block("conv(k=20)", device.type, width=step.WIDTH, causal=size.causal)
    theirs = step.PlainConvolution(step.WIDTH, 20, causal=size.causal).to(device)
    x = torch.randn(size.batch, size.length, step.WIDTH, device=device, requires_grad=True)
    found = attention.median_ms({"ours": lambda: ours(x), "theirs": lambda: theirs(x)}, seconds, device)
    yield Row(size.what, "torch's `Conv1d`", found["ours"], found["theirs"])


def chunked_rows(form: chunked.Form, seconds: float, device: torch.device) -> Iterator[Row]:
    """Measure the forward and backward pass of a layer with matrix states."""
    beside = "its chunked form, written by hand"
    yield Row(form.what, beside, *chunked.compare(form, seconds, device))


def layer_size(device: torch.device) -> attention.Size:
    """Return a size with enough streams to use the device fully."""
    return attention.Size(1 if device.type == "cpu" else 8, 256, device.type)


def layer_rows(seconds: float, device: torch.device) -> Iterator[Row]:
    """Measure an all-attention layer at the sizes of the paper."""
    found = attention.median_ms(attention.steps(layer_size(device)), seconds, device)
    ours_ms = found["all_attn"]
    yield Row(LAYER, "its equations, over gathered keys and values", ours_ms, found["transcription"])
    of_both = "`sa(pos=relative) >> ff` with as many parameters"
    yield Row(LAYER, of_both, ours_ms, found["sa >> ff"], is_bound=True)


def released_rows(
    what: str, seconds: float, device: torch.device, *, adaptive: bool, dropout: float
) -> Iterator[Row]:
    """Measure an all-attention layer at the sizes of the released program's small model."""
    small = attention.Size(8, 256, device.type)
    pair = attention.beside_released(small, heads=4, adaptive=adaptive, dropout=dropout)
    found = attention.median_ms(pair, seconds, device)
    yield Row(what, "the layer of the released program", found["all_attn"], found["released"])
    if "multiplied" in found:
        of_products = "what both multiply, nothing else"
        yield Row(what, of_products, found["all_attn"], found["multiplied"], is_bound=True)


def trial_rows() -> Iterator[Row]:
    """Measure how long trials without any training take."""
    import overhead  # noqa: PLC0415 -- Ray, which nothing else needs

    from activemem.engine.run.ray_connection import RAY_ENVIRONMENT  # noqa: PLC0415 -- as above

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
    of_disk = "what the disk takes to make its files durable"
    yield Row("an empty trial in a worker", of_disk, alone_ms, disk_ms, is_bound=True)


def search_rows() -> Iterator[Row]:
    """Measure a search of which each point is trained, evaluated and stored."""
    import optuna_by_hand  # noqa: PLC0415 -- Optuna, which nothing else needs

    what = "a point of a search by TPE, trained and stored"
    yield Row(what, "Optuna with SQLite and plain loops, by hand", *optuna_by_hand.measure())


def grid_rows() -> Iterator[Row]:
    """Measure a trial of a whole study, in this process and on Ray."""
    import grid_by_hand  # noqa: PLC0415 -- Ray, which nothing else needs

    what = f"a trial of a grid of {grid_by_hand.TRIALS}"
    yield Row(f"{what}, in one process", "a plain loop that writes a row", *grid_by_hand.measure_in_process())
    yield Row(f"{what}, on Ray", "Ray Tune, by hand", *grid_by_hand.measure_on_ray())


def machine(device: torch.device) -> str:
    """Return one line with the machine and versions."""
    now, place = datetime.now(UTC).date(), outcome.device_name(device)
    if device.type == "cpu":
        place += f" of {os.cpu_count()} cores"
    return f"activemem {__version__} ({outcome.commit()}), torch {torch.__version__}, {place}, {now}"


def tables(measurements: Iterable[tuple[str, Measure]], device: torch.device) -> tuple[str, str, bool]:
    """Print each row when it is measured; return both tables, and whether all rows succeeded.

    The first table is beside code of others, the second one beside our own code and lower bounds. Exceptions
    take the place of the failed rows, in the first table.
    """
    lines, bounds = [*HEADER], [*HEADER]
    is_whole, left = True, iter(measurements)
    while True:
        what = "all others"  # an exception between measurements ends the script
        try:
            if (taken := next(left, None)) is None:
                break
            what, measure = taken
            for row in measure():
                (bounds if row.is_bound else lines).append(str(row))
                print(row, file=sys.stderr, flush=True)
        except Exception as error:  # noqa: BLE001 -- an error must not lose the other rows
            is_whole = False
            traceback.print_exc()
            told = f"{type(error).__name__}: {error}".splitlines()[0]
            lines.append(f"| {what} | raised {escape(told)} | | | |")
        free_memory()
    return "\n".join([*lines, "", machine(device)]), "\n".join(bounds), is_whole


def all_there_is(seconds: float, device: torch.device, *, tiny: bool) -> Iterator[tuple[str, Measure]]:
    """Yield the name and function of each measurement that needs only torch; `tiny` selects small sizes."""
    yield from step_measures(step.comparisons(), seconds, device)
    for causal, length, batch in product((False, True), (256, 1024), (8, 32)):
        size = ConvolutionSize(batch, length, causal)
        yield size.what, partial(convolution_rows, size, seconds, device)
    for form in chunked.FORMS:
        yield form.what, partial(chunked_rows, form, seconds, device)
    yield LAYER, partial(layer_rows, seconds, device)
    for kind, adaptive, dropout in (
        ("", False, 0.0),
        (", learnt spans", True, 0.0),
        (", dropout", False, 0.1),
    ):
        what = f"8 rows of `all_attn(N={attention.VECTORS}, heads=4)`, width 256{kind}"
        yield what, partial(released_rows, what, seconds, device, adaptive=adaptive, dropout=dropout)


def step_measures(
    comparisons: Iterable[step.Comparison], seconds: float, device: torch.device
) -> Iterator[tuple[str, Measure]]:
    """Yield measurements of training steps."""
    for what in comparisons:
        yield what.what, partial(step_row, what, seconds, device)


def beside_packages(seconds: float, device: torch.device) -> Iterator[tuple[str, Measure]]:
    """Yield measurements that need packages other than torch.

    On a CPU, these include the cost of an empty trial and of a point of a search.
    """
    yield from step_measures(step.beside_packages(), seconds, device)
    if device.type == "cpu":
        yield "a point of a search", search_rows
        yield "a trial of a grid", grid_rows
        yield "an empty trial", trial_rows


def with_table(document: str, mark: str, found: str) -> str:
    """Return the document with the table after this mark replaced."""
    before, after = re.escape(mark), re.escape(END)
    text, count = re.subn(
        f"({before}\n).*?({after})",
        lambda match: f"{match[1]}\n{found}\n\n{match[2]}",
        document,
        flags=re.DOTALL,
    )
    assert count == 1, f"expected a mark in {DOCUMENT}"
    return text


def main() -> None:
    """Measure, print, and optionally write the document."""
    given = [each for each in sys.argv[1:] if not each.startswith("--")]
    prepare_cpu(1)  # as workers do; the compared programs get it, too
    device, tiny = torch.device("cuda" if "--cuda" in sys.argv else "cpu"), "--tiny" in sys.argv
    seconds = 0.1 if tiny else float(given[0]) if given else 20.0
    measured = all_there_is(seconds, device, tiny=tiny)
    with float32_products("float32"):
        found, bounds, is_whole = tables(
            measured if tiny else chain(measured, beside_packages(seconds, device)), device
        )
    print(found, bounds, sep="\n\n")
    if "--write" in sys.argv:
        text = with_table(DOCUMENT.read_text(encoding="utf-8"), MARKS[device.type], found)
        text = with_table(text, BOUND_MARKS[device.type], bounds)
        DOCUMENT.write_text(text, encoding="utf-8")
    sys.exit(0 if is_whole else 1)


if __name__ == "__main__":
    main()
