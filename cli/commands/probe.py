"""`activemem probe`: measurements of stored models, without further training."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ... import cli, reporting, storage, studies
from ...studies.text.errors import command_line
from ...studies.text.units import WIDTH, plural
from ..json_output import print_json
from ..options import JsonOption, OverridesOption, ResultsOption, number_option
from ..output import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_WRONG_INPUT, print_stderr
from .study import StudyName

if TYPE_CHECKING:
    from ... import ProbeResult

app = typer.Typer(
    help="Measure trained models: what they remember of their input, and what they write.",
    no_args_is_help=True,
)

_MAX_TRIAL_NAME_WIDTH = WIDTH - len("  probed  Δ 0.500")
"""The maximum width of the column with trial names."""

_STORED = "stored before"


@app.command()
def run(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    sequences: Annotated[
        int, number_option("--sequences", help="Measure on the first N test sequences.")
    ] = 10_000,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a study's stored trained models, and add the results to the store.

    The command measures how much of its input a recurrent encoder remembers, and runs the probes of plug-ins
    on the models that they support. If the study has `[decode]`, the command tunes the decoding of each
    translation model, such as its beam, on the dev split. It then translates the test split with the best
    settings, and stores the outputs. No model is trained, and none is measured twice. A model that exceeds
    time_limit_s is skipped. The study needs `keep_weights = true`. Exits with 1 if weights are missing or
    unusable, and with 2 if no trial is done.
    """
    settings = cli.load_settings({"results": results})
    opened = _open_with_weights(study, settings.store, overrides or ())
    settings.store.check_writable(opened.study.name)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        measured = opened.probe(settings.machine, sequences=sequences)
        found = [each for verb, probes in measured for each in _print_probes(opened.study, probes, verb)]
    except KeyboardInterrupt:
        again = command_line("probe", "run", study, set=overrides, sequences=sequences, results=results)
        print_stderr(f"stopped; what was measured is stored. Continue: {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    if as_json:
        counts = Counter(status for status, _ in found)
        left = {probed.trial.id: probed.reason for _, probed in found if probed.reason is not None}
        numbers = {"probed": counts["probed"], "tuned": counts["tuned"], "stored": counts[_STORED]}
        print_json(study=opened.study.name, **numbers, left=left)
    if any(probed.failed for _, probed in found):
        raise typer.Exit(EXIT_FAILED)


@app.command("lm-eval")
def lm_eval(
    study: StudyName,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="The names of tasks of lm_eval.")],
    *,
    folder: Annotated[
        str | None,
        typer.Option("--folder", metavar="PATH", help="Use only the tasks in this folder of YAML files."),
    ] = None,
    results: ResultsOption = None,
) -> None:
    """Score a study's stored language models on tasks of lm_eval, and store the scores.

    Tables, figures and claims can use a score as the metric `lm_eval[TASK,SCORE]`, for example
    `lm_eval[lambada,acc]`. The command replaces the scores of an earlier call. The study needs `keep_weights
    = true`, and the command needs the extra `activemem[lm-eval]`.
    """
    opened = _open_with_weights(study, cli.load_settings({"results": results}).store)
    found = opened.evaluate(tasks, None if folder is None else Path(folder))
    if any(probed.failed for _, probed in _print_probes(opened.study, found)):
        raise typer.Exit(EXIT_FAILED)


def _open_with_weights(
    name: str, store: storage.Store, overrides: Sequence[str] = ()
) -> reporting.StudyResults:
    from ...studies.planning.status import stored_outcomes, study_outcomes
    from ..missing_results import train_command

    opened = reporting.open_study(name, store, overrides)
    study, command = opened.study, train_command(opened.study, store)
    outcomes = study_outcomes(study, stored_outcomes(store, study))
    done = [trial for trial, status in outcomes.select("trial", "status").iter_rows() if status == "done"]
    if not done:
        print_stderr(
            f"study {study.name} has no finished trial in {store.place}; train it first:\n  {command}"
        )
        raise typer.Exit(EXIT_WRONG_INPUT)
    if not store.files.trials_with_weights(done):
        them = "it" if len(done) == 1 else "them"
        how = "" if study.header.keep_weights else "set keep_weights = true in [study] and "
        what = f"{store.absolute_place} has no weights of its {plural(len(done), 'finished trial')}"
        print_stderr(f"{study.name}: {what}; {how}train {them} again here:\n  {command}")
        raise typer.Exit(EXIT_FAILED)
    return opened


def _print_probes(
    study: studies.Study, probes: Iterator[ProbeResult], verb: str = "probed"
) -> list[tuple[str, ProbeResult]]:
    """Print a line for each new measurement, then counts. Return all results, each after its status."""
    from ..views.trial_lines import TrialNameColumns

    found: list[tuple[str, ProbeResult]] = []
    columns = TrialNameColumns.of(study)
    for probed in probes:
        if not probed.metrics and probed.reason is None:
            found.append((_STORED, probed))
            continue
        status = verb if probed.reason is None else "left"
        found.append((status, probed))
        columns.add([probed.trial])
        names = columns.cells(probed.trial, _MAX_TRIAL_NAME_WIDTH)
        print_stderr("  ".join([f"  {status:<6}", *names, probed.reason or _headline(probed.metrics)]))
        for attention in probed.ambiguous:
            print_stderr(f"  {'':<6}  not compared with {attention}, which has several trials")
    counts = Counter(status for status, _ in found)
    measured = f"{counts[verb]} of {plural(len(found), 'trial')} {verb}"
    others = [f"{count} {status}" for status, count in counts.items() if status != verb]
    print_stderr(f"{study.name}: {' · '.join([measured, *others])}")
    return found


def _headline(metrics: Mapping[str, float]) -> str:
    from ...studies.catalog.metrics import TUNED_METRIC, find_metric

    if TUNED_METRIC not in metrics and "memory_change" in metrics:
        return f"Δ {metrics['memory_change']:.3f}"
    if TUNED_METRIC not in metrics:
        name, value = next(iter(metrics.items()))
        return f"{name} {find_metric(name).format(value)}"
    return f"BLEU {metrics[TUNED_METRIC]:.1f} with a beam of {metrics['beam_tuned']:.0f}"
