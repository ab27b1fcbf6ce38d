"""`activemem study`: plan, run, watch, list, query, export, forget and rename studies."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Annotated, Literal

import typer

from ...tracking.opening import EXPORT_NAMES, SEARCH_EXPORT
from ..help_panels import EVERY_DAY, PanelCommand
from ..options import (
    AddressOption,
    BudgetOption,
    CheckpointEveryOption,
    DeviceMemoryOption,
    FailFastOption,
    JsonOption,
    KeepStaleOption,
    LocalOption,
    MaxFailuresOption,
    MaxTrialsOption,
    OnlyOption,
    OverridesOption,
    PackOption,
    ResultsOption,
    RetryFailedOption,
    RunOptions,
    ShardOption,
    SkipUnfitNodesOption,
    UntilDecidedOption,
    read_device_memory,
)
from ..output import EXIT_FAILED, EXIT_INTERRUPTED, bold, output_width, print_json, print_stderr, print_stdout
from ..plan_costs import group_sizes_of, plan_here

app = typer.Typer(help="Plan studies, run them, and see how far they are.", no_args_is_help=True)

StudyFile = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study file, or the name of a study that comes along.")
]
StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study by its name, as it last ran, or a study file.")
]


@app.command(rich_help_panel=EVERY_DAY)
def plan(
    study: StudyFile,
    *,
    overrides: OverridesOption = None,
    only: OnlyOption = None,
    device_memory: DeviceMemoryOption = None,
    on: Annotated[
        str | None, typer.Option("--on", metavar="GPU", help="Estimate the time on this GPU, as h100.")
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a study will train, where, and what that costs.

    It also warns of lengths that no model of the study can reach. FLOPs count a training step on sequences of
    the task's length, or of 40 tokens if it grows. Times come from trials in the store, or from some measured
    steps.
    """
    from ...reporting.results import StudyResults
    from ...studies.planning.accelerators import time_on
    from ...studies.planning.trials_to_run import select_trials
    from ...studies.rounds import follow_rounds
    from ...studies.study import load_study
    from ..machine_settings import load_settings
    from ..missing_results import train_command
    from ..plan_devices import count_at_once, free_for_run, packs
    from ..views import plan as view

    size = read_device_memory(device_memory)
    configured = load_settings({"results": results})
    found = follow_rounds(load_study(study, overrides or ()), configured.store)
    selected = select_trials(found, only) if only else None
    page = plan_here(found, configured, selected)
    noise = StudyResults(found, configured.store).noise
    if as_json:
        from ..plan_page import plan_page

        print_json(plan_page(found, page, configured.values, device_bytes=size, noise=noise))
    else:
        groups = group_sizes_of(found)
        together = packs(found, page, configured.values)
        text = view.format_plan(
            found,
            page,
            configured.values,
            groups,
            device_bytes=size,
            noise=noise,
            packs=together,
            run_free=free_for_run(found.name, configured.store),
            at_once=count_at_once(found, page, configured),
            first_trial=train_command(found, configured.store, max_trials=1),
            elsewhere="" if on is None else time_on(page, on),
        )
        print_stdout(text, styled=True)


@app.command(cls=PanelCommand, rich_help_panel=EVERY_DAY)
def run(
    context: typer.Context,
    study: StudyFile,
    *,
    overrides: OverridesOption = None,
    local: LocalOption = None,
    only: OnlyOption = None,
    shard: ShardOption = None,
    max_trials: MaxTrialsOption = None,
    max_failures: MaxFailuresOption = None,
    fail_fast: FailFastOption = False,
    retry_failed: RetryFailedOption = False,
    keep_stale: KeepStaleOption = False,
    until_decided: UntilDecidedOption = False,
    budget: BudgetOption = None,
    checkpoint_every: CheckpointEveryOption = None,
    pack: PackOption = None,
    address: AddressOption = None,
    skip_unfit_nodes: SkipUnfitNodesOption = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the trials of a study that are missing from the store.

    Run it again to continue after any interruption. Several runs on one store share the trials: none is
    trained twice. The exit status is 1 if a trial failed, 2 if a machine failed, and 130 after Ctrl-C or a
    SIGTERM, after which the run ends in order. A machine's failure is not stored.
    """
    from ..live.until_decided import run_as_asked
    from ..plugin_loading import given_plugins

    # Typer has read one value for each parameter above, whose names are those of RunOptions
    summary = run_as_asked(RunOptions(**context.params, plugin=given_plugins(context)))
    if summary is None or summary.stopped:
        raise typer.Exit(EXIT_INTERRUPTED)
    if summary.failed or summary.given_up:
        raise typer.Exit(EXIT_FAILED)


@app.command(rich_help_panel=EVERY_DAY)
def status(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many trials are done, failures, and the best points of a search."""
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results
    from ..views.status import explain_failures, format_best_points, format_unfinished

    opened = open_results(study, results, overrides)
    found = opened.study
    if as_json:
        from ..pages import StudyStatusPage

        print_json(StudyStatusPage.of_results(opened))
    else:
        note_missing_results(opened)
        now = opened.status
        title = map(bold, wrap(f"{found.name} · {found.title}", output_width()))
        print_stdout(
            "\n".join(
                [
                    *title,
                    *wrap(now.summary(), output_width()),
                    *format_unfinished(found, now),
                    *explain_failures(found, opened.store, now),
                    *format_best_points(found, opened.points),
                ]
            ),
            styled=True,
        )


@app.command()
def watch(study: StudyName, *, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Show how far a study is that runs elsewhere, by its store alone, until all of its trials have ended.

    Who trains, which epoch they are in and with what metrics, failures, and the time that is left. Without a
    terminal it is a line for each trial that ends. Ends as study run: with status 1 if a trial failed, with
    130 after Ctrl-C, which stops nothing but the watching.
    """
    from ...reporting.results import StudyResults
    from ..live.watch import print_end, watch_study
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results

    opened = open_results(study, results)
    note_missing_results(opened)
    now, complete = watch_study(opened.study, opened.store)
    failed = print_end(now)
    if as_json:
        from ..pages import StudyStatusPage

        print_json(StudyStatusPage.of_results(StudyResults(now.study, now.store)))
    if not complete:
        raise typer.Exit(EXIT_INTERRUPTED)
    if failed:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def forget(
    study: StudyName,
    *,
    only: OnlyOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a study's trials from the store: rows, metrics, outputs, weights and checkpoints.

    Nothing is removed while one of them is being trained. Trials that another study has run stay. Without
    --only, trials of earlier versions of the study are removed as well.
    """
    from ...studies.planning.trials_to_run import stored_part
    from ..machine_settings import open_results
    from ..views.store_upkeep import format_forgotten

    opened = open_results(study, results)
    found, store = opened.study, opened.store
    gone = store.upkeep.forget(found.name, stored_part(found, store, only or ()), dry=dry_run)
    if as_json:
        from ..pages import StudyForgetPage

        print_json(StudyForgetPage.of(found.name, store, gone, removed=not dry_run))
    else:
        print_stdout("\n".join(format_forgotten(found.name, gone, dry=dry_run)))


@app.command()
def rename(
    study: Annotated[str, typer.Argument(metavar="OLD", help="A study that has run, by its name.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name that it gets.")],
    *,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a study in the store another name; its rows and its record are moved, and no file of yours.

    Nothing is moved while one of its trials is being trained. After a crash, the same command finishes it.
    """
    from ...studies.last_run import load_last_run
    from ...studies.planning.trials_to_run import stored_part
    from ...studies.text.units import plural
    from ..machine_settings import load_settings

    store = load_settings({"results": results}).store
    is_done = store.upkeep.is_renamed(study, new)
    trials = () if is_done else stored_part(load_last_run(study, store), store, ())
    moved = store.upkeep.rename(study, new, trials)
    if as_json:
        from ..pages import StudyRenamePage

        print_json(StudyRenamePage(study=new, renamed=study, trials=moved))
        return
    print_stdout(f"{study} is {new} now: {plural(moved, 'trial')} moved")


@app.command()
def export(
    study: StudyName,
    *,
    to: Annotated[
        str,
        typer.Option("--to", metavar="|".join(EXPORT_NAMES), help="The program to export the results to."),
    ],
    out: Annotated[
        str,
        typer.Option("--out", metavar="PLACE", help="The folder or the file that it reads, or its server."),
    ],
    overrides: OverridesOption = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export a study's metrics of each epoch, settings, outcomes and tables to another program.

    Data that the program already has, from an earlier export or from the run itself, are not exported again.
    The export to optuna writes a search into an SQLite file, as points with their parameters and values.
    """
    from ...tracking.export import export_study
    from ...tracking.opening import open_trackers
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results
    from ..views.status import format_exported

    opened = open_results(study, results, overrides)
    found, store = opened.study, opened.store
    note_missing_results(opened)
    if to == SEARCH_EXPORT:
        from ...tracking.search_export import export_search

        exported = export_search(found, store, out)
    else:
        exported = export_study(found, store, open_trackers({to: out})[to])
    if as_json:
        from ..pages import StudyExportPage

        print_json(StudyExportPage(study=found.name, to=to, out=out, exported=exported))
    else:
        print_stdout(format_exported(found.name, to, out, exported))


@app.command("list")
def list_(*, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """List the studies of the package, and those in the store."""
    from ..machine_settings import load_settings
    from ..views.status import format_studies, studies_with_status

    found = studies_with_status(load_settings({"results": results}).store)
    if as_json:
        from ..pages import StudyListPage

        print_json(StudyListPage.of(found))
    else:
        print_stdout("\n".join(format_studies(found)))


@app.command()
def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='One statement, as "SELECT mixer, max_length FROM trials".')
    ],
    *,
    answer_format: Annotated[
        Literal["rich", "markdown", "csv"], typer.Option("--format", help="How to print the answer.")
    ] = "rich",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to FILE: .parquet, .csv or .json.")
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask SQL of everything in the store: its tables are trials, metrics and outputs.

    The first two have a column for each factor; trials has the final metrics, too, and metrics is long:
    epoch, step, name, value. A factor whose name is taken is factor_NAME. SELECT * FROM trials shows what
    there is. outputs has the lines that kept models wrote for test splits: line, source, reference, output.
    """
    from ...reporting.sql import query as answered
    from ..machine_settings import load_settings
    from ..views import query as view

    store = load_settings({"results": results}).store
    answer = answered(store, sql)
    if not store.last_numbers():
        print_stderr(f"no trial has ended in {store.absolute_place}; train one: activemem study run STUDY")
    if out is not None:
        view.save(answer, out)
    elif as_json:
        from ..pages import StudyQueryPage

        print_json(StudyQueryPage(rows=view.records(answer)))
    else:
        print_stdout(view.format_answer(answer, answer_format))
