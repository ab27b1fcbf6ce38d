"""Products of linear maps by oneDNN beside those that torch takes: milliseconds of one CPU, in turns.

Maps forwards and backwards, steps of two of the models of `bench/step.py`, then of the first trials of some
studies that come along. On processors of Intel and without 512-bit vectors trials keep what torch takes, and
it says so. The studies of languages need their corpora, in `data` or where ACTIVEMEM_DATA says.

Run: python bench/products.py [STUDY …]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from unittest.mock import patch

import step
import torch

from activemem.blocks.core import linear_maps
from activemem.engine.core.cpu import prepare_cpu
from activemem.engine.trial.training import Training
from activemem.studies.study import load_study

SHAPES = (  # rows, inputs, outputs
    (640, 64, 128),
    (640, 64, 256),
    (640, 128, 512),
    (256, 512, 512),
    (1280, 512, 2048),
    (256, 100, 10_000),
    (4096, 128, 128),
)
STUDIES = (
    "memory-degradation-translation",
    "language-modelling-small",
    "zoology-figure-2-small",
    "algorithmic-small",
    "attention-variants-small",
    "mad-small",
)
FOLDER = Path(__file__).parents[1] / "studies"
TURNS, CALLS = 5, 8


def times_ms(run: Callable[[], object]) -> tuple[float, float]:
    """The median milliseconds of one CPU, by oneDNN where it is faster and by torch alone."""
    found = dict[bool, list[float]]()
    for _ in range(TURNS):
        for has_more in (True, False):
            with patch.object(linear_maps, "onednn_has_wider_vectors", lambda has_more=has_more: has_more):
                run()
                for _ in range(CALLS):
                    began = time.thread_time()
                    run()
                    found.setdefault(has_more, []).append(time.thread_time() - began)
    return 1e3 * median(found[True]), 1e3 * median(found[False])


def mapped(rows: int, inputs: int, outputs: int) -> Callable[[], object]:
    """A map of rows, and its gradients."""
    x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
    bias, towards = torch.randn(outputs), torch.randn(rows, outputs)
    given = [each.requires_grad_() for each in (x, weight, bias)]
    return lambda: torch.autograd.grad(linear_maps.linear(*given), given, towards)


def show(what: str, run: Callable[[], object]) -> None:
    """Print a line."""
    ours, theirs = times_ms(run)
    print(f"{what:36}{ours:10.2f}{theirs:10.2f}{ours / theirs:8.2f}", flush=True)


def main() -> None:
    """All of it."""
    prepare_cpu(1)
    if not torch.backends.mkldnn.is_available():
        sys.exit("expected a torch with oneDNN, got one without")
    if not linear_maps.onednn_has_wider_vectors():
        print("this processor keeps what torch takes; oneDNN is measured all the same")
    print(f"{'':36}{'oneDNN':>10}{'torch':>10}{'ratio':>8}")
    for shape in SHAPES:
        show("{} rows, {} to {}".format(*shape), mapped(*shape))
    for recipe in step.RECIPES[:2]:
        show(recipe, Training(step.settings(recipe), torch.device("cpu")).take_step)
    data = Path(os.environ.get("ACTIVEMEM_DATA", "data"))
    for study in sys.argv[1:] or STUDIES:
        settings = load_study(FOLDER / f"{study}.toml").trials[0].settings
        show(study, Training(settings, torch.device("cpu"), data).take_step)


if __name__ == "__main__":
    main()
