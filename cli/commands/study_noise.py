"""`activemem study noise`: the smallest difference that a study's seeds can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..options import JsonOption, ResultsOption
from ..output import print_json, print_stdout
from .study import StudyName, app

if TYPE_CHECKING:
    from ...studies.study import Study


@app.command()
def noise(study: StudyName, *, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Print the smallest difference between two cells that the study's seeds can show, for each metric.

    A two-sided t test at 5 % finds a difference of this size with a chance of 80 %. A smaller difference is
    no result, and neither is the lead of the best of many points.
    """
    from ...reporting.noise_floor import noise_floor
    from ...studies.catalog.metrics import find_metric
    from ...studies.last_run import load_last_run
    from ...studies.planning.status import study_outcomes
    from ..machine_settings import load_settings

    store = load_settings({"results": results}).store
    found = load_last_run(study, store)
    rows, seeds = study_outcomes(found, store.trials()), max(len(found.seeds), 1)
    floors = {name: noise_floor(rows, name, seeds) for name in _compared(found)}
    if as_json:
        from ..pages import StudyNoisePage

        print_json(StudyNoisePage(study=found.name, noise=floors))
        return
    if not floors:
        print_stdout(f"{found.name} compares no metric: it has no [[table]]")
    for name, floor in floors.items():
        if floor is None:
            print_stdout(f"{name}: unknown, as no cell has two seeds yet")
            continue
        metric = find_metric(name)
        print_stdout(
            f"{name}: differences from {metric.format(floor.difference)} on can be seen with {seeds} seeds"
            f" (s.d. {metric.format(floor.sd)} over {floor.cells} cells)"
        )


def _compared(study: Study) -> list[str]:
    """Return the metrics that a search optimises, or that the tables of a grid show."""
    if study.search is not None:
        return [objective.name for objective in study.search.objectives]
    return list(dict.fromkeys(name for spec in study.tables for _, name in spec.named_metrics()))
