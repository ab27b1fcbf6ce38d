"""Trials without a study file."""

from activemem.studies import Trial
from activemem.studies.schema.settings import TrialSettings


def make_trial(mixer="sa", task="sort", seed=0, *, epochs=10, **levels):
    """Return a trial of a small grid over mixers, tasks and seeds; further levels are for display."""
    settings = TrialSettings.model_validate(
        {
            "model": {"recipe": f"2 * ({mixer} >> ff(8))", "d_model": 8},
            "task": {"name": task},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-3},
                "batch_size": 2,
                "epochs": epochs,
                "steps_per_epoch": 1,
                "curriculum": {"start": 5},
            },
            "seed": seed,
        }
    )
    return Trial(
        study="small", levels={"mixer": mixer, "task": task, **levels, "seed": seed}, settings=settings
    )
