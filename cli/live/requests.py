"""A run as the options of `study run` ask for it, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...studies.planning.trials_to_run import select_shard, select_trials
from ...studies.rounds import follow_rounds
from ...studies.study import Study, load_study
from ...studies.text.command_line import command_line
from ...studies.text.units import labelled_lines
from ..machine_settings import ResolvedSettings, load_settings
from ..missing_results import DEFAULT_RESULTS
from ..options import RunOptions
from ..output import output_width, print_json, print_stderr
from .run import RunRequest, print_first_table, run_and_report
from .until_decided import check_can_add_seeds, run_until_decided

if TYPE_CHECKING:
    from ...engine.run.driver import Summary


def run_as_asked(options: RunOptions) -> Summary | None:
    """Run a study as its options say, and print what a program asks for; None if it was left at once."""
    budget_s = options.budget_s()
    settings = load_settings(options.settings())
    study = follow_rounds(load_study(options.study, options.overrides or ()), settings.store)
    if options.until_decided:
        check_can_add_seeds(study)
    request = _request(options, study)
    _print_data_warnings(study)
    _note_new_store(settings)
    if options.until_decided:
        summary = run_until_decided(request, settings, budget_s)
    else:
        summary = run_and_report(request, settings)
    if summary is not None and not summary.is_cut_short:
        print_first_table(study, settings.store)
    if options.as_json:
        from ..pages import RunEntry, StudyStatusPage

        run = RunEntry.of(summary, request.resume_command)
        print_json(StudyStatusPage.of_study(study, settings.store, run))
    return summary


def _note_new_store(settings: ResolvedSettings) -> None:
    """Print where results will be if there is no such folder yet, since its path may be mistyped."""
    store = settings.store
    if store.address is None and store.place != DEFAULT_RESULTS and not store.root.exists():
        print_stderr(f"new store: {store.absolute_place}")


def _print_data_warnings(study: Study) -> None:
    summary = study.own_corpus.summary if study.own_corpus else None
    for text in summary.warnings if summary else ():
        print_stderr("\n".join(labelled_lines("warning", text, output_width())))


def _request(options: RunOptions, study: Study) -> RunRequest:
    parts = [select_trials(study, options.only)] if options.only else []
    parts += [select_shard(study, options.shard)] if options.shard is not None else []
    return RunRequest(
        study=study,
        local=options.local,
        trial_ids=frozenset.intersection(*parts) if parts else None,
        max_trials=options.max_trials,
        max_failures=1 if options.fail_fast else options.max_failures,
        retry_failed=options.retry_failed,
        keep_stale=options.keep_stale,
        skip_unfit_nodes=options.skip_unfit_nodes,
        resume_command=options.command(study.overrides),
        table_command=command_line(
            "table", "render", study.name, results=options.results, plugin=options.plugin
        ),
    )
