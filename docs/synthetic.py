"""Make a store of numbers that nobody measured, for figures of studies that have not run yet.

    python docs/synthetic.py FOLDER

It holds every trial of docs/synthetic.toml with the metrics that its figures draw: plausible in their shape,
drawn from a fixed seed, and of no meaning.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from activemem.storage import MetricRow, Store, TrialRow
from activemem.studies.costs import cost
from activemem.studies.study import load
from activemem.studies.trial import Trial

STUDY = Path(__file__).with_name("synthetic.toml")
EPOCHS = 20
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
SKILL = {
    "cgru(k=3)": 0.5,
    "sa": 0.75,
    "conv(k=3)": 0.7,
    "highway_conv(k=3)": 0.72,
    "sa + highway_conv(k=3)": 1.0,
}


def main() -> None:
    """Write the store into the folder that is named."""
    store = Store(Path(sys.argv[1]))
    for trial in load(STUDY).trials():
        store.write(*outcome(trial))
    store.compact()


def outcome(trial: Trial) -> tuple[TrialRow, list[MetricRow]]:
    """A made-up outcome of a trial, always the same."""
    chance = random.Random(trial.id)
    size = cost(trial.settings, 20)
    skill = SKILL[str(trial.levels["mixer"])] + chance.gauss(0, 0.03)
    loss = 1.2 + 1.4 * (size.parameters / 20_000) ** -0.25 - 0.35 * skill + chance.gauss(0, 0.01)
    metrics = [*epochs(chance, loss), *last(chance, skill)]
    finals = {row.name: row.value for row in metrics if row.epoch == EPOCHS and "[" not in row.name}
    settings = trial.settings
    row = TrialRow(
        trial=trial.id,
        attempt=0,
        study=trial.study,
        recipe=settings.model.recipe,
        recipe_id=hashlib.sha256(settings.model.recipe.encode()).hexdigest()[:8],
        task=settings.task.name,
        seed=settings.seed,
        status="done",
        factors=json.dumps(dict(trial.levels)),
        settings=settings.model_dump_json(),
        metrics=tuple(finals.items()),
        parameters=size.parameters,
        flops=float(size.flops) * 32 * 100 * EPOCHS,
        epochs=EPOCHS,
        steps=100 * EPOCHS,
        seconds=60.0,
        peak_mib=100.0,
        version="synthetic",
        device="none: nobody measured these",
        host="none",
        started=WHEN,
        finished=WHEN,
    )
    return row, metrics


def epochs(chance: random.Random, loss: float) -> list[MetricRow]:
    """A loss that falls to its end."""
    falling = (
        loss + (3.5 - loss) * math.exp(-epoch / 5) + chance.gauss(0, 0.015) for epoch in range(1, EPOCHS + 1)
    )
    return [
        MetricRow(step=100 * epoch, epoch=epoch, name="loss", value=value)
        for epoch, value in enumerate(falling, start=1)
    ]


def last(chance: random.Random, skill: float) -> list[MetricRow]:
    """What is measured once, after the last epoch: by length, by sample, by place."""
    found = {"bleu": 30 * skill}
    for start in range(0, 60, 10):
        found[f"bleu[{start}-{start + 10}]"] = (
            30 * skill - (1.1 - skill) * start * 0.25 + chance.gauss(0, 0.8)
        )
    for sample in range(40):
        found[f"memory_change[{sample}]"] = math.tanh(1 + skill + chance.gauss(0, 0.35))
    for row in range(16):
        weights = [
            math.exp(-abs(15 - row - column) * 2 * skill + chance.gauss(0, 0.3)) for column in range(16)
        ]
        for column, weight in enumerate(weights):
            found[f"attention[{row},{column}]"] = weight / sum(weights)
    return [
        MetricRow(step=100 * EPOCHS, epoch=EPOCHS, name=name, value=value) for name, value in found.items()
    ]


if __name__ == "__main__":
    main()
