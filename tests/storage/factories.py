"""Factories of rows and stores, and scripts that run on stores."""

import math
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from activemem.storage import MetricRow, Store, TrialRow, WrittenOutputs


def make_trial_id(number):
    return f"{number:016x}"


def make_trial_row(number=0, **changes):
    values = {
        "trial": make_trial_id(number),
        "attempt": 0,
        "study": "alpha",
        "recipe": "4 * (sa + conv(20) >> ff(512))",
        "recipe_id": "7c41e09a",
        "task": "sort",
        "seed": number,
        "status": "done",
        "factors": '{"mixer": "sa", "seed": 0}',
        "settings": '{"model": {"d_model": 128}}',
        "metrics": (("max_length", 30.0), ("loss", math.nan)),
        "parameters": 2_893_312,
        "flops": 1.5e12,
        "epochs": 2,
        "steps": 200,
        "seconds": 12.5,
        "peak_mib": 96.25,
        "version": "0.1.0",
        "device": "cpu",
        "host": "here",
        "started": datetime(2026, 11, 28, 12, 0, 0, 1, tzinfo=UTC),
        "finished": datetime(2026, 11, 28, 12, 1, 0, 999_999, tzinfo=UTC),
    }
    return TrialRow(**values | changes)


def make_metric_rows(value=0.25):
    return [
        MetricRow(step=100 * epoch, epoch=epoch, name=metric, value=value * epoch)
        for epoch in (2, 1)
        for metric in ("loss", "accuracy")
    ]


def make_outputs(*lines, **changes):
    values = {
        "beam": 4,
        "length_penalty": 0.6,
        "coverage_penalty": 0.0,
        "sizes": "all",
        "sources": [f"source of {line}" for line in lines or ("one", "two")],
        "references": [f"right {line}" for line in lines or ("one", "two")],
        "outputs": list(lines or ("one", "two")),
    }
    return WrittenOutputs(**values | changes)


def fill_store(root, numbers, **changes):
    store = Store(root)
    for number in numbers:
        store.write(make_trial_row(number, **changes), make_metric_rows(number))
    return store


def uncompacted_path(root, number, attempt=0, dataset="trials", study="alpha"):
    return root / dataset / study / f"{make_trial_id(number)}-{attempt}.parquet"


def store_contents(root):
    """Return a store's contents as plain values."""
    store = Store(root)
    return store.trials().rows(), store.metrics().rows(), store.outputs().rows()


def copy_store(root, target):
    shutil.copytree(root, target)
    return target


def start_script(script, *arguments):
    """Start a script of this folder in its own process."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_script(process):
    """Wait for a script; return its output."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out
