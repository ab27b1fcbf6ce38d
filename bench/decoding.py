"""Tokens per second of greedy decoding and of a beam of 4, against a loop without cached states.

python bench/decoding.py [SECONDS a measurement]

The loop is greedy and runs model(source, prefix) for each symbol. All outputs have the maximum length, so
that none ends early.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from activemem.blocks.models.model import TransductionModel, build
from activemem.engine.decoding.searches import Decoding, decode

RECIPES = (
    "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
    "seq2seq(4 * (sa >> ff(512)), 4 * (sa >> ff(512)))",
    "seq2seq(4 * (conv(k=7) >> ff(512)), 4 * (conv(k=7) >> ff(512)))",
    "neural_gpu",
    "extended_neural_gpu",
)
WIDTH, VOCAB, BATCH, SOURCE, TARGET, BEAM = 128, 8000, 16, 20, 30, 4
PAD, END = 0, 2


def build_endless_model(recipe: str) -> TransductionModel:
    """Return a model that assigns zero probability to the end symbol."""
    generator = torch.Generator().manual_seed(0)
    model = build(recipe, d_model=WIDTH, source_vocab=VOCAB, vocab=VOCAB, generator=generator).eval()
    with torch.no_grad():
        model.output.bias[[PAD, END]] = -100.0
    return model


def decode_without_state(model: TransductionModel, sources: Tensor) -> Tensor:
    """Return greedy outputs, where each symbol takes a full pass over all earlier symbols."""
    target = torch.full((len(sources), TARGET), END)
    with torch.no_grad():
        for place in range(TARGET):
            seen = target if model.body.depends_on_target_length else target[:, : place + 1]
            target[:, place] = model(sources, seen)[:, place].argmax(1)
    return target


def median_tokens_per_s(runners: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the median tokens per second of CPU time of each runner, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    end = time.perf_counter() + seconds
    for run in runners.values():
        run()
    while time.perf_counter() < end or not all(times.values()):
        for name, run in runners.items():
            started = time.process_time()
            run()
            times[name].append(BATCH * TARGET / (time.process_time() - started))
    return {name: statistics.median(each) for name, each in times.items()}


def main() -> None:
    """Print a line for each model."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    torch.set_num_threads(1)
    print(
        f"tokens a second, {BATCH} sources of {SOURCE}, outputs of {TARGET}, width {WIDTH}, {VOCAB} symbols,"
        " one CPU thread (CPU time, medians); ratios to the loop"
    )
    sources = torch.randint(3, VOCAB, (BATCH, SOURCE), generator=torch.Generator().manual_seed(1))
    for recipe in RECIPES:
        model = build_endless_model(recipe)
        found = median_tokens_per_s(
            {
                "again": lambda model=model: decode_without_state(model, sources),
                "greedy": lambda model=model: decode(model, sources, Decoding(), max_length=TARGET),
                "beam": lambda model=model: decode(model, sources, Decoding(beam=BEAM), max_length=TARGET),
            },
            seconds,
        )
        greedy, beam = (
            f"{found[name]:7.0f} ({found[name] / found['again']:5.2f})" for name in ("greedy", "beam")
        )
        print(f"  {recipe:64} again {found['again']:7.0f}   greedy {greedy}   beam {BEAM} {beam}", flush=True)


if __name__ == "__main__":
    main()
