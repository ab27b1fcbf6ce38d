"""A study with figures of every kind, and a store with hand-checkable numbers."""

from datetime import UTC, datetime

from activemem import load_study
from activemem.reporting.kinds import build_curve
from activemem.storage import MetricRow, Store, TrialRow
from activemem.studies.presentation.reader import KINDS

from ...study_texts import study_text

STUDY_TEXT = study_text(
    study={"name": "drawn", "title": "Figures of every kind", "paper": "active-memory-transformer"},
    model={"recipe": "1 * ({mixer} >> ff({filter}))"},
    train={"epochs": 3, "steps_per_epoch": 10},
    factors={
        "mixer": ["sa", "conv(k=20)", "sa + conv(k=20)"],
        "filter": [8, 80, 800],
        "task": ["sort", "reverse"],
        "seed": [0, 1, 2],
    },
)

WHEN = datetime(2026, 11, 28, tzinfo=UTC)

MIXERS = ("sa", "conv(k=20)", "sa + conv(k=20)")

TRIAL_ENDINGS = {
    ("conv(k=20)", 8, "reverse", 0): "failed",
    ("conv(k=20)", 8, "reverse", 1): "pruned",
    ("conv(k=20)", 8, "reverse", 2): None,
    ("sa", 800, "reverse", 2): float("nan"),
}
"""The endings of trials without a value: a status, missing, or not finite."""


def make_store(study, folder):
    """Return a store in which trials have the values of `length`, except those in ENDS."""
    found = Store(folder)
    for trial in study.trials:
        place = tuple(trial.levels[name] for name in ("mixer", "filter", "task", "seed"))
        end = TRIAL_ENDINGS.get(place, "done")
        if end is not None:
            found.write(*make_rows(trial, end))
    return found


def expected_length(levels):
    """Return 10, 20 or 30 by the mixer plus 1, 2 or 3 by the filter, shifted by the seed."""
    mixer = 10 * (1 + MIXERS.index(levels["mixer"]))
    return mixer + 1 + (8, 80, 800).index(levels["filter"]) + (levels["seed"] - 1) / 10


def make_rows(trial, end):
    """Return a trial's row and its metrics."""
    value = expected_length(trial.levels)
    rows = [
        MetricRow(step=10 * epoch, epoch=epoch, name="length", value=value * epoch / 3) for epoch in (1, 2, 3)
    ]
    last = {f"bleu[{low}-{low + 10}]": value - low / 10 for low in (0, 10, 20)}
    last |= {f"attention[{y},{x}]": float(x == y) for x in range(3) for y in range(3)}
    last |= {f"source_symbol[{place}]": 40.0 + place for place in range(3)} | {
        "bigram_change[1]": value / 100
    }
    last |= {f"target_symbol[{place}]": 50.0 + trial.levels["seed"] for place in range(3)}
    last |= {f"memory_change[{sample}]": sample / 10 for sample in range(11)}
    rows += [MetricRow(step=30, epoch=3, name=name, value=each) for name, each in last.items()]
    value = end if isinstance(end, float) else value
    status = end if isinstance(end, str) else "done"
    settings = trial.settings
    row = TrialRow(
        trial=trial.id,
        attempt=0,
        study=trial.study,
        recipe=settings.model.recipe,
        recipe_id="00000000",
        task=settings.task.name,
        seed=settings.seed,
        status=status,
        reason=None if status == "done" else "for the test",
        factors="{}",
        settings="{}",
        metrics=(("max_length", value), ("loss", value / 10)),
        parameters=1000 * trial.levels["filter"],
        flops=1e9,
        epochs=3,
        steps=30,
        seconds=1.0,
        peak_mib=1.0,
        version="0.1.0",
        device="a processor",
        host="here",
        started=WHEN,
        finished=WHEN,
    )
    return row, rows


def make_curve(study, frames, **spec):
    """Return the figure of a specification for the data of a store."""
    return build_curve(study, figure(**spec), *frames)


def figure(kind, **keys):
    """Return the keys of a figure of some kind."""
    return KINDS["curve"][kind](name="each", kind=kind, **keys)


def study_with_curves(*curves):
    """Return the study with figures, each given by the lines of a [[curve]]."""
    return load_study(STUDY_TEXT + "".join(f"\n[[curve]]\n{each}" for each in curves))
