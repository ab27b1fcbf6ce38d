"""The results in the store: each trial's latest attempt, with every metric that studies show.

It also has the sentences on results that tables, figures and claims share: their provenance, what is left
out, and which tasks no model has learnt.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

import polars as pl

from ..storage import Store, StoreError
from ..storage.rows import KEY_COLUMNS, has_trial
from ..studies.catalog.metrics import (
    COSTS,
    METRICS,
    METRICS_AND_COSTS,
    MODEL_COSTS,
    PROBED_METRIC,
    TUNED_METRIC,
    find_metric,
    is_target,
    metric_family,
    metric_index,
)
from ..studies.judged.keys import JUDGED
from ..studies.planning.final_values import (
    BITS_PER_BYTE,
    DIVERGED,
    FindCourse,
    ValueStatus,
    describe_divergence,
    guessing_losses,
    may_diverge,
    probe_command,
    with_bits_per_byte,
    with_model_costs,
    with_targets,
    without_whole_dev,
)
from ..studies.planning.reused_trials import describe_stale, find_stale_trials
from ..studies.planning.status import (
    count_devices,
    outcome_trials,
    stored_outcomes,
    study_outcomes,
    timed_devices,
)
from ..studies.presentation.kinds import ResultKeys, TableKind
from ..studies.resolve.costs import has_many_lengths, sequence_tokens
from ..studies.resolve.grid import training_difference
from ..studies.resolve.trial import Trial, code_owner, first_of_each_kind, settings_from_json, shown
from ..studies.schema.factors import SEED, one_line
from ..studies.schema.settings import TaskSettings, TrialSettings
from ..studies.study import Study
from ..studies.text.errors import command_line
from ..studies.text.units import listed, number_range, plural

if TYPE_CHECKING:
    from ..studies.claims.comparisons import Claim


def load_outcomes(
    store: Store, *studies: Study, shown: Iterable[ResultKeys | Claim] | None = None
) -> pl.DataFrame:
    """Load the latest attempt of each trial in the store, with the metrics that `studies` use.

    They are those of the tables, figures and claims `shown`, by default all. Metrics of probes (measurements
    after training) are among them. The attempts include the metrics that identify the probed and tuned
    models. The column DIVERGED marks trainings of the studies that diverged, including those of added seeds.
    """
    judged = [study.with_later_seeds() if study.header.max_seeds else study for study in studies]
    if shown is None:
        shown = [each for one in studies for each in (*one.tables, *one.curves, *one.claims)]
    named = named_metrics(shown).union(*(each.search.settings.metric for each in studies if each.search))
    outcomes = stored_outcomes(store, *judged, probes=named)
    return complete_outcomes(outcomes, store.metric_course, named, *judged)


def complete_outcomes(
    outcomes: pl.DataFrame, find_course: FindCourse, named: Collection[str], *studies: Study
) -> pl.DataFrame:
    """Add values that are computed from metric histories, such as divergence.

    The column DIVERGED marks diverged trainings. The `named` targets become final metrics, and so
    do costs that follow from settings, and bits per byte where a row was stored without them.
    """
    targets = [name for name in named if is_target(name)]

    def find_trials(rows: pl.DataFrame) -> dict[str, Trial]:
        return {name: trial for study in studies for name, trial in outcome_trials(study, rows).items()}

    def find_tasks(rows: pl.DataFrame) -> dict[str, TaskSettings]:
        return {name: trial.common.task for name, trial in find_trials(rows).items()}

    if costs := sorted((MODEL_COSTS.keys() - COSTS.keys()).intersection(named)):
        outcomes = with_model_costs(outcomes, costs, find_trials(outcomes))
    if targets or BITS_PER_BYTE.intersection(named):
        tasks = find_tasks(outcomes)
        outcomes = with_targets(
            with_bits_per_byte(outcomes, named, tasks),
            sorted(targets),
            lambda name, rows: without_whole_dev(
                find_course(name, rows.filter(has_trial(tasks))), rows, tasks
            ),
        )
    doubtful = outcomes.filter(may_diverge())
    own = (study_outcomes(study, doubtful).select(*KEY_COLUMNS) for study in studies)
    doubtful = pl.concat([doubtful.select(*KEY_COLUMNS).clear(), *own]).unique()
    if doubtful.is_empty():
        return outcomes.with_columns(pl.lit(None, dtype=pl.String).alias(DIVERGED))
    judged = outcomes.filter(has_trial(doubtful["trial"]))
    return describe_divergence(outcomes, doubtful, find_course, guessing_losses(find_tasks(judged)))


def mark_diverged(outcomes: pl.DataFrame, store: Store) -> pl.DataFrame:
    """Add the column DIVERGED to outcomes of any studies, from the settings stored with them."""
    doubtful, tasks = outcomes.filter(may_diverge()), dict[str, TaskSettings]()
    for trial, settings in doubtful.select("trial", "settings").iter_rows():
        with suppress(StoreError):  # a task of a plug-in that is not loaded
            tasks[trial] = settings_from_json(settings).task
    return describe_divergence(outcomes, doubtful, store.metric_course, guessing_losses(tasks))


def named_metrics(shown: Iterable[ResultKeys | Claim]) -> set[str]:
    """Return the metrics in tables, figures and claims; of a probe, with those of its model."""
    named = set[str]()
    for each in shown:
        if isinstance(each, ResultKeys):
            named.update(name for _, name in each.named_metrics())
        else:
            named.update(quantity.metric for quantity in each.quantities)
    known = (METRICS_AND_COSTS.get(metric_family(name)) for name in named)
    probed = any(metric is not None and metric.is_probe for metric in known)
    return named | {PROBED_METRIC, TUNED_METRIC} if probed else named


def omitted_trials(gaps: Counter[str], trials: int, study: str) -> Iterator[str]:
    """Yield sentences that count the trials of a study without a value, one for each reason."""
    kinds = {
        ValueStatus.INFINITE: "infinite",
        ValueStatus.CENSORED: "ended before the target",
        ValueStatus.FAILED: "failed",
        ValueStatus.DIVERGED: "diverged",
        ValueStatus.PRUNED: "stopped early",
        ValueStatus.INCOMPLETE: "incomplete (lost metrics)",
        ValueStatus.NO_VALUE: "without a value",
        ValueStatus.PENDING: f"not probed yet ({probe_command(study)})",
        ValueStatus.MISSING: "not run",
    }
    omitted = [f"{gaps[status]} {what}" for status, what in kinds.items() if gaps[status]]
    if omitted:
        yield f"Excluded from {trials} trials: {', '.join(omitted)}."


COMMIT_DIGITS = 7
"""The number of displayed digits of a commit."""


def short_commit(commit: str) -> str:
    """Shorten the hash of a commit to 5d02964 or, with local changes that it identifies, 5d02964+a1b2c3d4."""
    base, plus, changes = commit.partition("+")
    return base[:COMMIT_DIGITS] + plus + changes


def torch_words(torch_version: str, cuda_version: str | None) -> str:
    """Return the version of torch as text. For a training on a GPU, it has the version of CUDA, too."""
    return f"torch {torch_version}" + (f" with CUDA {cuda_version}" if cuda_version else "")


def program_words(rows: pl.DataFrame) -> Iterator[str]:
    """Yield the versions of activemem and torch in these rows.

    Versions of activemem come first, with their commits. If only some rows have one, the last is "no commit".
    """
    for version in rows["version"].unique().sort():
        if version.startswith(JUDGED):
            yield version
            continue
        own = rows.filter(version=version)
        short = sorted(set(map(short_commit, own["commit"].drop_nulls().unique())))
        trained = own.filter(pl.col("device") != "")  # a trial that was pruned before has no device
        short += ["no commit"] if short and trained["commit"].has_nulls() else []
        yield f"activemem {version}" + (f" ({', '.join(short)})" if short else "")
    versions = rows.select("torch_version", "cuda_version").drop_nulls("torch_version").unique()
    if len(versions):
        yield ", ".join(sorted(torch_words(*each) for each in versions.iter_rows()))


def provenance(trials: Collection[str], outcomes: pl.DataFrame) -> str:
    """Describe the origin of numbers: their count of trials, their code, their devices and their date."""
    shown = ("version", "commit", "torch_version", "cuda_version", "device", "finished")
    known = outcomes.filter(has_trial(trials))
    kinds = sorted(known["arithmetic"].fill_null(0).unique()) if "arithmetic" in known.columns else []
    known = known.select("trial", *shown)
    count = f"{len(known)}" if len(known) == len(trials) else f"{len(known)} of {len(trials)}"
    words = list(program_words(known))
    noun = "run" if words and words[0].startswith(JUDGED) else "trial"
    parts = [f"{count} {noun}{'' if len(trials) == 1 else 's'}", *words]
    if len(known):
        # a trial that was pruned before it trained has no device
        if devices := ", ".join(known["device"].drop_nulls().unique().sort()).removeprefix(", "):
            parts.append(devices)
        parts.extend(known.select(pl.col("finished").max().dt.strftime("%Y-%m-%d")).to_series().drop_nulls())
    if len(kinds) > 1:
        parts.append(f"means over the arithmetic {' and '.join(map(str, kinds))} of the code")
    return one_line(" · ".join(parts))


def overrides_sentence(overrides: Sequence[str]) -> str:
    """Return a sentence on the overridden settings, without levels, which a table shows; "" for none."""
    changed = [change for change in overrides if not change.startswith("factors.")]
    return one_line(f"Changed from the study's file: {', '.join(changed)}.") if changed else ""


def match_sentence(study: Study) -> str:
    """Return a sentence on the costs that are equal for all models (key `match`).

    It includes the largest relative difference, rounded up to two digits. For equal FLOPs per token, it also
    includes the difference between whole trainings. It is "" if the study does not match costs.
    """
    if study.design.matched_size is None or not study.size_matches:
        return ""
    costs = " and ".join(_MATCHED[name] for name in study.design.matched_size.costs)
    if "flops" in study.design.matched_size.costs:
        kinds = [each.settings for each in first_of_each_kind(study.trials)]
        if any(map(has_many_lengths, kinds)):
            costs += f" (counted at {number_range(sorted(map(sequence_tokens, kinds)))} tokens)"
    worst = max(abs(match.largest.relative_residual) for match in study.size_matches.values())
    # nine digits first, so that an error in the last bit is not rounded up
    bound = Context(prec=2, rounding=ROUND_CEILING).create_decimal(f"{100 * worst:.9g}")
    apart = f"; {text}" if (text := training_difference(study)) else ""
    return f"Models have equal {costs}{f' within {bound:f} %' if worst else ', exactly'}{apart}."


_MATCHED = {
    "parameters": "parameters",
    "flops": "FLOPs a token",
    "state": "state",
    "memory": "memory of a training step",
}


def device_fault(
    study: Study, outcomes: pl.DataFrame, timed: Collection[str], is_shown: Callable[[Trial], bool]
) -> str:
    """Return a message if timed results come from several devices, else "".

    Timed results depend on the speed of the device: trainings with a time budget, and the metrics `timed` of
    the trials for which `is_shown`.
    """
    if outcomes["device"].n_unique() < 2:
        return ""
    counts = timed_devices(study, outcomes)
    why, instead = f"study {study.name} has [train] seconds", ""
    if len(counts) < 2 and timed:
        done = outcomes.filter(pl.col("status") == "done")
        trials = [trial for trial, known in outcome_trials(study, done).items() if is_shown(known)]
        counts = count_devices(done.filter(has_trial(trials)))
        why = f"the device changes {' and '.join(dict.fromkeys(timed))}"
        instead = "select cells of one device, or "
    if len(counts) < 2:
        return ""
    text = "; ".join(f"{plural(count, 'trial')} on {device}" for device, count in counts.items())
    return one_line(
        f"{why}, so only results of one device can be compared, got {text}; {instead}"
        f"retrain those of other devices: {command_line('study', 'forget', study.name, only='FACTOR=LEVEL')}"
    )


def stale_sentences(study: Study, outcomes: pl.DataFrame, metrics: Collection[str]) -> tuple[str, ...]:
    """Return sentences on results from other versions of plug-ins, or of activemem's own code.

    They are trials that are left out, and values of `metrics`, and of a search's objectives, that a plug-in
    has measured before it changed. Trials of code with uncommitted changes are named beside those of other
    code.
    """
    stale = find_stale_trials(study, outcomes)
    found = [f"{describe_stale(stale)} and excluded; study run --keep-stale reuses them."] if stale else []
    codes = {code for each in first_of_each_kind(study.examples) for code in each.settings.code.values()}
    for code in sorted(codes):
        if reused := _count_other_versions(study, outcomes, code):
            trials, owner = plural(reused, "trial"), code_owner(code)
            found.append(f"{trials} of another version of {owner}, reused by study run --keep-stale.")
    commits = study_outcomes(study, outcomes).filter(status="done")["commit"].drop_nulls()
    edited = commits.filter(commits.str.contains("+", literal=True))
    if 0 < len(edited) < len(commits):
        names, others = ", ".join(edited.unique().sort()), len(commits) - len(edited)
        found.append(
            f"Trials of this study by activemem with uncommitted changes: {len(edited)} ({names}); "
            f"without: {others}."
        )
    return (*map(one_line, found), *old_values_sentences(study, outcomes, metrics))


def old_values_sentences(
    study: Study, outcomes: pl.DataFrame, metrics: Collection[str] = ()
) -> tuple[str, ...]:
    """Return sentences on metrics, and objectives of a search, measured before a plug-in changed."""
    found: list[str] = []
    goals = [goal.name for goal in study.search.settings.objectives] if study.search is not None else []
    for name in sorted(METRICS.keys() & set(map(metric_family, (*metrics, *goals)))):
        if (code := METRICS.code(name)) and (changed := _count_other_versions(study, outcomes, code)):
            trials = plural(changed, "trial")
            found.append(
                f"{name} was measured by another version of {code_owner(code)} in {trials}: "
                "forget these trials (study forget), and train them again."
            )
    return tuple(map(one_line, found))


def _count_other_versions(study: Study, outcomes: pl.DataFrame, code: str) -> int:
    """Return how many of a study's trials used another version of this code's plug-in."""
    # a version is `0.1.0 with mqar.py 1a2b3c4d, …`
    programs = study_outcomes(study, outcomes)["version"].str.split(" with ").list.last().str.split(", ")
    own = ([each for each in listed if each.startswith(f"{code_owner(code)} ")] for listed in programs)
    return sum(bool(each) and shown(code) not in each for each in own)


def unused_seeds_sentence(study: Study, table: TableKind, outcomes: pl.DataFrame) -> str:
    """Return a sentence on stored seeds that a table leaves out; "" if there are none."""
    parts: list[str] = []
    for name, trials in _left_out_trials(study, outcomes).items():
        if seeds := {trial.id: trial.seed for trial in trials if table.shows(trial)}:
            why = "which the study does not list" if name == study.name else f"trained for the study {name}"
            parts.append(f"{_trials_of_seeds(seeds.values())}, {why}")
    return one_line(f"Left out: {'; '.join(parts)}.") if parts else ""


def _left_out_trials(study: Study, outcomes: pl.DataFrame) -> dict[str, list[Trial]]:
    """Return the ended trials that a grid would have with other seeds, by the study that trained them.

    Its own come first. Whichever study of the store trained a trial, it counts, as for claims
    (`studies/evidence.py`). Seeds that only an override leaves out are the study's, as are those to add
    later.
    """
    if study.search is not None or study.runs is not None:
        return {}
    used = [*study.design.known_levels[SEED], *study.later_seeds]
    others = outcomes.filter(~pl.col("seed").is_in(used))
    if others.is_empty():  # the cells of a large grid take seconds
        return {}
    tasks = {each.settings.task.name for each in first_of_each_kind(study.cells)}
    others = others.filter(pl.col("task").is_in(tasks))
    trained_for = dict(others.select("trial", "study").iter_rows())
    found = {study.name: list[Trial]()}
    for trial in study.trials_of_seeds(others["seed"].unique().sort().to_list()):
        if (name := trained_for.get(trial.id)) is not None:
            found.setdefault(name, []).append(trial)
    return found


def _trials_of_seeds(seeds: Collection[int]) -> str:
    known = sorted(set(seeds))
    is_range = known[-1] - known[0] == len(known) - 1
    numbers = number_range(known) if is_range else listed(known)
    return f"{plural(len(seeds), 'stored trial')} of seed{'s' if known[1:] else ''} {numbers}"


SOLVED_LENGTH = "max_length"
"""The metric that is 0 if a training has not solved the first length of its curriculum."""

NEAR_GUESS = 0.05
"""The share of the way from a guess to the best value up to which a value counts as that of guessing."""

_GUESS_ERRORS = 3.0
"""The number of standard errors of a share above a guess up to which it counts as that of guessing."""


def guess_of(metric: str, settings: TrialSettings) -> float | None:
    """Return the value of a metric that guessing reaches; None if it is unknown."""
    return settings.task.guessed_value(metric_family(metric), metric_index(metric))


def guess_limit(metric: str, settings: TrialSettings) -> float | None:
    """Return the best value of a metric that still counts as that of guessing; None if it is unknown.

    It is 5 % of the way from a guess to the best value, or 3 standard errors of a share, whichever is farther
    from the guess. The first length of a curriculum is either solved or not.
    """
    guess, family = guess_of(metric, settings), metric_family(metric)
    if guess is None or metric == SOLVED_LENGTH:
        return guess
    if family.endswith("_scaled_accuracy"):
        name = metric.replace("scaled_", "")
        share, limit = guess_of(name, settings), guess_limit(name, settings)
        return None if share is None or limit is None else (limit - share) / (1 - share)
    kind = find_metric(metric)
    if not kind.higher_is_better:
        return (1 - NEAR_GUESS) * guess  # the best loss is 0
    examples = getattr(settings.task, f"{family.partition('_')[0]}_examples", None)
    error = math.sqrt(guess * (1 - guess) / examples) if kind.is_share and examples else 0.0
    return min(1.0, guess + max(NEAR_GUESS * (1 - guess), _GUESS_ERRORS * error))


def has_learnt(metric: str, settings: TrialSettings, values: Collection[float]) -> bool | None:
    """Return whether any of these values is better than that of guessing; None if it is unknown."""
    limit = guess_limit(metric, settings)
    if limit is None or not values:
        return None
    return max(values) > limit if find_metric(metric).higher_is_better else min(values) < limit


def unlearnt_sentence(metric: str, settings: TrialSettings, values: Collection[float]) -> str:
    """Return a sentence that no model has learnt a task; "" if one has, or if it is unknown."""
    if has_learnt(metric, settings, values) is not False:
        return ""
    if metric == SOLVED_LENGTH:
        curriculum = settings.train.curriculum
        start = f"length {curriculum.start}, " if curriculum else ""
        start += "the start of the curriculum"
        return f"none of these trainings solved {start}: train longer or start shorter"
    guess, limit = guess_of(metric, settings), guess_limit(metric, settings)
    side = "above" if find_metric(metric).higher_is_better else "below"
    far = f"{side} {limit:.3g}, where guessing gives {guess:.3g}"
    hint = "; train longer, or make the task easier" if metric.startswith("dev_") else ""
    return f"none of these models gets {far}, so none has learnt this{hint}"
