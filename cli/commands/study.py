"""`activemem study`: plan, run, watch, list, query, export, forget and rename studies."""

from __future__ import annotations

import inspect
import sys
from textwrap import wrap
from typing import Annotated, Any, Literal

import typer

from ... import cli, reporting, studies
from ...studies.text.errors import StudyError
from ...studies.text.units import format_duration, plural
from ..help_panels import EVERY_DAY, PanelCommand
from ..json_output import print_json
from ..options import JsonOption, OnlyOption, OverridesOption, ResultsOption, RunOptions, StudyFile
from ..output import EXIT_FAILED, EXIT_INTERRUPTED, bold, output_width, print_stderr, print_stdout, waiting
from ..plugin_loading import given_plugins

app = typer.Typer(help="Plan, run and inspect studies.", no_args_is_help=True)

ASKED_ABOVE_S = 300.0
"""The training time of trials above which a terminal is asked before they are removed."""

StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="The name of a study in the store, or a study file.")
]


@app.command(rich_help_panel=EVERY_DAY)
def plan(
    study: StudyFile,
    *,
    overrides: OverridesOption = None,
    only: OnlyOption = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="GPU", help="Estimate the time on this GPU, for example h100."),
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a study will train, on which device, and at what cost.

    The plan also warns if the longest sequence is longer than the reach of every model. FLOPs are those of
    one training step. Its sequences have the task's length, or 40 tokens if the length grows during training.
    The command estimates times from stored trials, or from a few measured steps.
    """
    from ...studies.last_run import load_to_run
    from ...studies.plan_text import format_plan
    from ...studies.planning.accelerators import time_on
    from ...studies.searches.words import rung_costs
    from ..missing_results import (
        note_old_values,
        note_other_results,
        note_other_versions,
        train_command,
    )

    configured = cli.load_settings({"results": results})
    store = configured.store
    with waiting(f"computing the costs of {study}"):
        opened = reporting.StudyResults(load_to_run(study, store, overrides or ()), store)
        planned = opened.plan(configured.machine, only=only or ())
        planned = planned if on is None else planned.with_notes([("where", time_on(planned, on))])
    note_other_results(opened.study, store)
    note_other_versions(opened)
    note_old_values(opened.study, store)
    if as_json:
        design = opened.study.design
        told = {"kind": design.kind, "told": design.explain(), "aliases": design.alias_words()}
        print_json(planned, design=told, ladder=opened.study.planned_sizes, rungs=rung_costs(opened.study))
    else:
        text = format_plan(
            planned,
            first_trial=train_command(opened.study, store, max_trials=1),
            width=output_width(),
            bold=bold,
        )
        print_stdout(text, styled=True)


def run(context: typer.Context, **options: Any) -> None:  # noqa: ANN401 -- fields of RunOptions
    """Train the trials of a study that are missing from the store.

    Run the same command to continue after any interruption. Several runs may share a store: no trial is
    trained twice. The exit status is 1 if a trial failed, 2 if a machine failed, and 130 after Ctrl-C,
    SIGTERM or a closed terminal, which end the run cleanly. Machine failures are not stored.
    """
    from ..live.run import run_from_options

    summary = run_from_options(RunOptions(**options, plugin=given_plugins(context)))
    if summary is None or summary.stopped:
        raise typer.Exit(EXIT_INTERRUPTED)
    if summary.failed or summary.given_up:
        raise typer.Exit(EXIT_FAILED)


_declared = inspect.signature(RunOptions, eval_str=True).parameters.values()
_context, _ = inspect.signature(run, eval_str=True).parameters.values()
run.__signature__ = inspect.Signature([_context, *(each for each in _declared if each.name != "plugin")])
app.command(cls=PanelCommand, rich_help_panel=EVERY_DAY)(run)


@app.command(rich_help_panel=EVERY_DAY)
def status(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    versions: Annotated[
        bool,
        typer.Option(
            "--versions",
            help="Show instead what the store has of other versions of the study, and what has changed since "
            "there were results.",
        ),
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the numbers of done and failed trials, the failures, and the best points of a search."""
    from ..machine_settings import open_results
    from ..missing_results import (
        describe_versions,
        note_missing_results,
        note_old_values,
        note_other_versions,
        require_readable,
    )
    from ..views.status import explain_failures, format_best_points, format_unfinished, status_facts

    opened = open_results(study, results, overrides)
    found, now = opened.study, opened.status
    if versions and not as_json:
        print_stdout("\n".join(describe_versions(opened)))
    elif as_json:
        print_json(now, **status_facts(opened, now))
    else:
        if not now.started:
            note_missing_results(opened, now)
        note_other_versions(opened)
        note_old_values(found, opened.store)
        title = map(bold, wrap(f"{found.name} · {found.title}", output_width()))
        print_stdout(
            "\n".join(
                [
                    *title,
                    *wrap(now.summary(), output_width()),
                    *format_unfinished(found, opened.store, now),
                    *explain_failures(found, opened.store, now),
                    *format_best_points(found, opened.points),
                ]
            ),
            styled=True,
        )
    require_readable(opened)


@app.command()
def watch(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the progress of a study that runs elsewhere, until all of its trials have ended.

    The display shows running trials with epochs and metrics, failures, and the remaining time. All of this is
    read from the store. Without a terminal, the command prints a line for each trial that has ended. Exits
    with 1 if a trial failed, and with 130 after Ctrl-C, which stops only this command, not the run.
    """
    from ..live.watch import print_end, watch_study
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results
    from ..views.status import status_facts

    opened = open_results(study, results, overrides)
    note_missing_results(opened)
    now, complete = watch_study(opened.study, opened.store)
    failed = print_end(now)
    if as_json:
        ended = reporting.StudyResults(now.study, now.store)
        status = ended.status
        print_json(status, **status_facts(ended, status))
    if not complete:
        raise typer.Exit(EXIT_INTERRUPTED)
    if failed:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def forget(
    study: StudyName,
    *,
    only: OnlyOption = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Remove only trials of other versions of the study.")
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Also remove trials that other studies use.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a study's trials from the store: rows, metrics, outputs, weights and checkpoints.

    In a terminal, the command asks first if the trials took more than five minutes to train. While one of
    them is training, nothing is removed. A trial that another study uses, too, becomes a trial of that study.
    --only removes only trials of the study's current version, which is that of its file or of its last run.
    --stale removes only trials of other versions, which had other settings, data or code. Without either
    option, all of them are removed.
    """
    from ...storage.rows import KEY_COLUMNS, has_trial
    from ...studies.last_run import users_of_trials
    from ...studies.planning.other_versions import describe_lacking_plugins
    from ...studies.planning.trials_to_run import stale_part, stored_part
    from ..machine_settings import open_results
    from ..views.store_upkeep import format_forgotten

    opened = open_results(study, results)
    found, store = opened.study, opened.store
    if stale and only:
        raise typer.BadParameter("--stale and --only exclude each other: give one of them")
    trials = stale_part(found, store) if stale else stored_part(found, store, only or ())
    if stale:
        for note in describe_lacking_plugins(found, store):
            print_stderr(note)
    if not (yes or dry_run or as_json) and sys.stdin.isatty():
        stored = store.trials(columns=(*KEY_COLUMNS, "seconds")).filter(has_trial(trials))
        if (seconds := float(stored["seconds"].sum())) > ASKED_ABOVE_S:
            lost = f"{plural(len(stored), 'trial')} of {found.name}, which took {format_duration(seconds)}"
            typer.confirm(f"Remove {lost}?", abort=True, err=True)
    needed = {} if shared else users_of_trials(store, trials, apart_from=found.name)
    gone = store.upkeep.forget(found.name, trials, needed, dry=dry_run)
    if as_json:
        print_json(gone)
    else:
        rows = store.trials(columns=(*KEY_COLUMNS, "factors", "status", "epochs", "finished"))
        rows = rows.filter(has_trial(gone.trials)).sort("finished")
        print_stdout("\n".join(format_forgotten(gone, rows)))


@app.command()
def export(
    study: StudyName,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PROGRAM",
            help="The program to which the study is exported: tensorboard, mlflow, wandb, trackio, optuna "
            "or the tracker of a plug-in.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="PLACE",
            help="Where to write: a folder (tensorboard, wandb, trackio), an SQLite file (optuna), or the "
            "address of a server or database (mlflow).",
        ),
    ],
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a study to another program: settings, metrics of each epoch, outcomes and tables.

    The command skips data that the program already has, from an earlier export or from the run itself. The
    export to optuna writes the points of a search, with their parameters and values, into an SQLite file.
    """
    from ...tracking.contract import open_trackers
    from ...tracking.export import export_study
    from ...tracking.search_export import export_search
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results
    from ..views.status import format_exported

    opened = open_results(study, results)
    found, store = opened.study, opened.store
    note_missing_results(opened)
    if to == "optuna":
        exported = export_search(found, store, out)
    else:
        exported = export_study(found, store, open_trackers({to: out})[to])
    if as_json:
        print_json(exported, study=found.name, to=to, out=out)
    else:
        print_stdout(format_exported(found.name, to, out, exported))


@app.command("list")
def list_(*, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """List your own studies in the store, and then the studies that come with activemem."""
    from ..views.status import format_studies, studies_with_status

    store = cli.load_settings({"results": results}).store
    found = studies_with_status(store)
    if as_json:
        studies = {
            name: {"error": str(one)}
            if isinstance(one, StudyError)
            else {"title": one[0], "counts": one[1].counts, "status": one[1]}
            for name, one in found.items()
        }
        print_json(studies=studies)
    else:
        print_stdout("\n".join(format_studies(found, store)))


@app.command()
def query(
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help='One SQL statement, for example "SELECT mixer, max_length FROM trials".'
        ),
    ],
    *,
    study: Annotated[
        str | None,
        typer.Option(
            "--study", metavar="STUDY", help="Only trials of this study, even if another study trained them."
        ),
    ] = None,
    answer_format: Annotated[
        Literal["rich", "markdown", "csv"], typer.Option("--format", help="The output format of the result.")
    ] = "rich",
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the store with SQL: the tables are trials, metrics and outputs.

    Table `trials` has a row for each trial, with a column for each final metric. Table `metrics` has a row
    for each value of a metric, with the columns epoch, step, name and value. Both tables have a column for
    each factor, with levels as in the study file, such as '{swa}'. If another column has the factor's name,
    it is factor_NAME; labels of tasks are in factor_task. If a done trial diverged, the column `diverged` of
    `trials` has the reason; tables leave such trials out. SELECT * FROM trials shows all columns. Table
    `outputs` has a row for each line that a model wrote for a test split, with the columns line, source,
    reference and output. The tables hold all rows of the store, including those of earlier settings; a row
    names only one of the studies that share its trial. With --study, they hold the current trials of that
    study, including the seeds that --until-decided added, with its factors.
    """
    from ..missing_results import note_missing_results
    from ..views.query import format_answer

    store = cli.load_settings({"results": results}).store
    chosen = None if study is None else studies.load_last_run(study, store)
    if chosen is not None:
        note_missing_results(reporting.StudyResults(chosen, store))
    answer = reporting.query(store, sql, chosen)
    if chosen is None and not store.last_numbers():
        print_stderr(f"no trial has ended in {store.absolute_place}; train one: activemem study run STUDY")
    if as_json:
        print_json(rows=answer)
    else:
        print_stdout(format_answer(answer, answer_format))
