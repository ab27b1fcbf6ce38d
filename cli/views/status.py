"""The status of a study as lines of text: failed and unfinished trials, and the best points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ... import reporting
from ...reporting.outcomes import SOLVED_LENGTH, unlearnt_sentence
from ...storage import Store
from ...studies.last_run import shipped_names
from ...studies.outlines import StudyOutline, outline_studies
from ...studies.planning.other_versions import find_other_versions
from ...studies.planning.status import (
    StudyStatus,
    stored_outcomes,
    study_status,
)
from ...studies.resolve.trial import Trial
from ...studies.schema.factors import filled_levels, value_name
from ...studies.schema.limits import find_quantity
from ...studies.searches.points import SearchPoints, comparison_note
from ...studies.searches.words import left_out
from ...studies.study import Study
from ...studies.text.errors import StudyError
from ...studies.text.units import align_columns, format_duration, labelled_lines, plural
from ..missing_results import failure_help
from ..output import fit_line, output_width
from . import trial_lines
from .trial_lines import TrialNameColumns

if TYPE_CHECKING:
    from ...tracking.export import StudyExport


def format_failures(reasons: Sequence[tuple[str, int]]) -> list[str]:
    """Return a line for each reason why trials failed."""
    return [fit_line(f"  {count} failed   {reason}") for reason, count in reasons]


def explain_failures(study: Study, store: Store, now: StudyStatus) -> list[str]:
    """Return the reasons why trials failed, and commands that help, each on a line."""
    lines = format_failures(now.failure_reasons)
    return [*lines, *failure_help(study, store, dict(now.failure_reasons))] if lines else []


def format_abandoned(count: int) -> list[str]:
    """Return a line that counts the begun trials that no process trains, if there are any."""
    return [f"  {plural(count, 'trial')} begun, but not in training now"] if count else []


def format_unfinished(study: Study, store: Store, now: StudyStatus) -> list[str]:
    """Return a line for each begun trial, the latest first, with its progress and its last activity.

    A line counts those that no process trains.
    """
    if not now.started:
        return []
    clock = datetime.now(UTC)
    rows: list[tuple[Trial, list[str]]] = []
    for name, progress in now.progress.items():
        ago = f"{format_duration((clock - progress.saved_at).total_seconds())} ago"
        trial = now.started[name]
        rows.append((trial, [*trial_lines.progress_words(trial, progress.epoch, progress.metrics), ago]))
    rows += [(trial, ["begun"]) for name, trial in now.started.items() if name not in now.progress]
    columns = TrialNameColumns.of(study, now.started.values())
    last = store.last_numbers()
    held = store.leases(None).held({trial: last.get(trial, -1) + 1 for trial in now.started})
    lines = trial_lines.format_trials(rows, columns, output_width())
    return [*lines, *format_abandoned(len(now.started) - len(held))]


def format_best_points(study: Study, found: SearchPoints | None) -> list[str]:
    """Return a line for each of a search's best points, and for each reason why points are not ranked."""
    if study.search is None or found is None:
        return []
    best, columns = found.best(), list[list[str]]()
    for place, objective in enumerate(study.search.settings.objectives):
        metric = find_quantity(objective.name)
        assert metric is not None, "the study file was checked"
        means = [metric.format(each.means[place]) for each in best]
        width = max(map(len, means), default=0)
        columns.append([f"{objective.name} {mean:>{width}}" for mean in means])
    points = [filled_levels(each.values) for each in best]
    names = dict.fromkeys(name for each in points for name in each)
    rows = [[f"{name}={value_name(each[name])}" if name in each else "" for name in names] for each in points]
    texts = align_columns(rows)
    lines = [fit_line(f"  {'  '.join(means)}   {text}") for *means, text in zip(*columns, texts, strict=True)]
    lengths = [length for each in found.ranked() for length in each.measured.get(SOLVED_LENGTH, {}).values()]
    unsolved = unlearnt_sentence(SOLVED_LENGTH, found.trained[0].settings, lengths) if lengths else ""
    note = comparison_note(study) if best else ""
    gaps = [fit_line(f"  {count} excluded   {reason}") for count, reason in left_out(found)]
    notes = [each for text in (unsolved, note) for each in labelled_lines("note", text, output_width())]
    return [*lines, *gaps, *notes]


def studies_with_status(store: Store) -> dict[str, tuple[str, StudyStatus] | StudyError]:
    """Return the title and status of each study by name, or the error of a study that cannot be read."""
    studies = outline_studies(store)
    outcomes = stored_outcomes(store, *(each for each in studies.values() if isinstance(each, Study)))
    found = dict[str, tuple[str, StudyStatus] | StudyError]()
    for name, study in studies.items():
        if isinstance(study, StudyError):
            found[name] = study
        elif isinstance(study, StudyOutline):
            found[name] = study.title, StudyStatus(total=study.trials, left=study.trials)
        elif study.search is not None:
            found[name] = study.title, study_status(study, store)
        else:
            found[name] = study.title, study_status(study, store, outcomes)
    return found


def status_facts(results: reporting.StudyResults, status: StudyStatus) -> dict[str, object]:
    """Return what `study status --json` prints beside the status. A run replaces `run`."""
    study, found = results.study, results.points
    return {
        "study": study.name,
        "title": study.title,
        "counts": status.counts,
        "other_versions": find_other_versions(study, results.store),
        "best": found.best() if found else (),
        "left_out": list(left_out(found)) if found else (),
        "run": None,
    }


def format_studies(found: Mapping[str, tuple[str, StudyStatus] | StudyError], store: Store) -> list[str]:
    """Return a line for each study in a store: its name, its numbers of trials, its title.

    The user's own studies come first, then those that come with activemem.
    """
    shipped = shipped_names(store)
    own = {name: one for name, one in found.items() if name not in shipped}
    others = {name: one for name, one in found.items() if name in shipped}
    groups = ((f"your studies, in {store.absolute_place}", own), ("studies that come with activemem", others))
    lines = list[str]()
    for heading, group in groups:
        rows = [
            (name, "unreadable", one.messages[0])
            if isinstance(one, StudyError)
            else (name, _count_words(one[1]), one[0])
            for name, one in group.items()
        ]
        names, counts = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
        lines += ["", fit_line(f"{heading}:")] if rows else []
        lines += [fit_line(f"  {name:<{names}}   {count:>{counts}}   {text}") for name, count, text in rows]
    return lines[1:]


def _count_words(status: StudyStatus) -> str:
    counts = status.counts
    others = (f", {counts[each]} {each}" for each in ("failed", "pruned") if counts[each])
    return f"{counts['done']}/{status.total} done{''.join(others)}"


def format_exported(study: str, program: str, place: str, exported: StudyExport) -> str:
    """Describe an export, for example `chain for tensorboard in runs: 4 trials, 40 epochs, 1 table`."""
    parts = [plural(exported.trials, "trial"), plural(exported.epochs, "epoch")]
    text = ", ".join([*parts, *([plural(exported.tables, "table")] if exported.tables else [])])
    known = f"; {plural(exported.known, 'trial')} already there" if exported.known else ""
    return f"{study} for {program} in {place}: {text}{known}"
