"""The final value of a metric for each trial, or the reason why it is missing.

Costs to reach a target are values, too.

Tables, figures, claims, searches and probes all read final values here. If a trial has several values of one
name, the last counts.

A training diverged if it ended with most of its improvement lost, or worse than a guess. It is only slow, not
diverged, if it started below twice a guess's loss and still improved. The training loss of a short epoch is
noisy, and the dev loss also rises by overfitting. So if the dev loss is measured after each epoch, both
losses must show it. Averages over seeds with a diverged one represent no training, and so does their spread.
So a diverged training is treated like a failed one: tables name it with its value and leave it out of all
numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum

import polars as pl

from ...grammar import nodes
from ...grammar.seq2seq import is_recurrent
from ...grammar.vocabulary.spec import Settings as Arguments
from ...grammar.vocabulary.spec import spec_of
from ...storage.rows import has_trial
from ..catalog.metrics import (
    COSTS,
    METRICS,
    MODEL_COSTS,
    PROBED_METRIC,
    PROBES,
    TUNED_METRIC,
    TUNED_METRICS,
    Currency,
    Metric,
    Target,
    find_metric,
    last_digit,
    metric_family,
    read_target,
)
from ..catalog.own_corpora import OwnDocuments
from ..catalog.tasks import (
    GeneratedTask,
    LabelledSettings,
    LanguageModelSettings,
    TaskSettings,
    corpus_of_task,
    require_algorithmic,
)
from ..resolve.costs import model_cost
from ..resolve.trial import Trial
from ..schema.factors import first_line
from ..schema.settings import TrialSettings, read_recipe
from ..text.errors import command_line

DIVERGED = "diverged"
"""The column that describes the loss of a diverged training; null for any other."""

LOST_SHARE = 0.5
"""A training diverged if it lost more than this share of its loss's improvement since the first epoch."""

NOT_A_NUMBER = "not a number"
"""The beginning of the failure reason of a training whose loss became NaN; it counts as diverged."""

SEES_FUTURE = "sees the future"
"""The beginning of the failure reason of a training whose model is not causal; another try fails, too."""

_DIVERGED_START = "diverged: "

_HAS_NAN = pl.col("reason").cast(pl.String).str.starts_with(NOT_A_NUMBER).fill_null(value=False)

MIN_RISE = 0.1
"""A relative rise of the loss below this counts as noise."""

_MAX_FIRST = 2.0
"""A training is slow, and did not diverge, if it began below this multiple of a guess's loss and improved."""


def may_diverge() -> pl.Expr:
    """Return a Polars expression for trials that count as diverged if their loss has risen.

    These are the finished trials without a curriculum. With a curriculum, each success makes the sequences
    longer, so that the loss rises in a healthy training, too.
    """
    grows = [name for name, metric in METRICS.items() if metric.steps_with_curriculum]
    grew = pl.col("metrics").list.eval(pl.element().struct.field("name").is_in(grows)).list.any()
    return (pl.col("status") == "done") & ~grew


def guessing_losses(tasks: Mapping[str, TaskSettings]) -> dict[str, float]:
    """Return each trial's loss for a model that guesses.

    It gives all classes, or all symbols that it can predict, the same probability; the loss is in nats. For
    the user's labels that are numbers, it predicts their mean. Other outputs that are numbers have no such
    loss, nor have tasks with their own losses.
    """
    distinct = {id(task): task for task in tasks.values()}  # trials of a cell share their task
    losses = {key: _guessing_loss(task) for key, task in distinct.items()}
    return {trial: loss for trial, task in tasks.items() if (loss := losses[id(task)]) is not None}


def describe_divergence(
    outcomes: pl.DataFrame, doubtful: pl.DataFrame, find_course: FindCourse, guessing: Mapping[str, float]
) -> pl.DataFrame:
    """Add a column that describes how the loss of each diverged trial rose.

    The rows are the latest attempts of trials. The column is DIVERGED. It is null for trials that did not
    diverge. `doubtful` are the attempts that `may_diverge`; `guessing` is the result of `guessing_losses`.
    """
    course = _summarise(find_course("loss", doubtful))
    first, low, last, guess = pl.col("first"), pl.col("low"), pl.col("last"), pl.col("guess")
    rise, is_slow = last - low, (last == low) & (last < first) & (first < _MAX_FIRST * guess)
    course = course.with_columns(
        guess=pl.col("trial").replace_strict(guessing, default=None, return_dtype=pl.Float64),
        lost=(rise > LOST_SHARE * (first - low)) & (rise > MIN_RISE * low),
    ).with_columns(ignorant=((last > (1 + MIN_RISE) * guess) & ~is_slow).fill_null(value=False))
    doubted = course.filter(pl.col("lost") | pl.col("ignorant"))["trial"]
    if len(doubted):
        dev = _summarise(find_course("dev_loss", doubtful.filter(has_trial(doubted))))
        dev = dev.select("trial", "epochs", dev_low=low, dev_last=last)
        course = course.join(dev, on=["trial", "epochs"], how="left")
        course = course.with_columns(
            pl.col(name) & (pl.col("dev_last") > (1 + MIN_RISE) * sound).fill_null(value=True)
            for name, sound in (("lost", pl.col("dev_low")), ("ignorant", guess))
        )
    low, last, guess = (each.round_sig_figs(3) for each in (low, last, guess))
    words = (
        pl.when("lost")
        .then(pl.format("rose from {} to {}", low, last))
        .when("ignorant")
        .then(pl.format("ended at {}, where guessing gives {}", last, guess))
    )
    words_by_trial = dict(course.select("trial", words).drop_nulls().iter_rows())
    diverged = pl.col("trial").replace_strict(words_by_trial, default=None, return_dtype=pl.String)
    return outcomes.with_columns(diverged.alias(DIVERGED))


def _summarise(course: pl.DataFrame) -> pl.DataFrame:
    """Return the first, lowest and last value of each trial, and the number of epochs with a value."""
    value, order = pl.col("value"), pl.col("epoch")
    return course.sort(order).group_by("trial").agg(
        first=value.first(), low=value.min(), last=value.last(), epochs=order.n_unique()
    )  # fmt: skip


def _guessing_loss(task: TaskSettings) -> float | None:
    if isinstance(task, GeneratedTask) and type(task).losses is not GeneratedTask.losses:
        return None  # the task defines its own loss
    model = task.interface.model
    if model.targets is not None:
        # labels of one's own are standardised
        return 1.0 if isinstance(task, LabelledSettings) else None
    outputs = model.classes or model.vocab
    return None if outputs is None else math.log(outputs)


def encoder_arguments(recipe: str) -> Arguments | None:
    """Return the arguments of the recurrent encoder in a `seq2seq` recipe; None for any other recipe."""
    root = read_recipe(recipe).root
    if not isinstance(root, nodes.BlockNode) or root.name != "seq2seq":
        return None
    arguments = spec_of(root.name).settings(root)
    return arguments if is_recurrent(arguments["encoder"]) else None


def probe_command(study: str) -> str:
    """Return the command that probes the models of a study."""
    return command_line("probe", "run", study)


class ValueStatus(StrEnum):
    """State of a trial's value of a metric, such as done, pending or failed.

    Several trials without a value show the first of their states in this order.
    """

    DONE = "done"  # it has a finite value
    INFINITE = "infinite"  # it ended with an infinite value of a metric for which lower is better
    CENSORED = "censored"  # it ended before it reached a target
    BEGUN = "begun"  # it has a checkpoint and no outcome
    PENDING = "pending"  # it is trained, and the probe that measures the metric has not run
    FAILED = "failed"
    DIVERGED = "diverged"  # its training lost most of what it had learnt
    NO_VALUE = "none"  # it ended without a finite value, or before a plug-in registered the metric
    PRUNED = "pruned"  # it was stopped early
    INCOMPLETE = "incomplete"  # its metrics are damaged or missing, and it runs again
    MISSING = "missing"  # it has not run

    @property
    def text(self) -> str:
        """The words that a table shows in place of a missing value."""
        words = {self.INFINITE: "∞", self.NO_VALUE: "no value", self.MISSING: "not run"}
        return words.get(self, self.value)


def trial_values(
    study: str,
    trials: Iterable[str],
    outcomes: pl.DataFrame,
    metric: str,
    *,
    metrics: pl.DataFrame | None = None,
    begun: Collection[str] = (),
) -> pl.DataFrame:
    """Return the value of a metric for each trial, and why a value is missing.

    `outcomes` are the store's latest attempts. For a metric with an index, the last value in `metrics`, the
    store's history, takes precedence over the final one. `begun` are the trials with a checkpoint, `study`
    names the study to probe. `value` is the stored value, even if the status is not "done"; `why` is empty
    for "done". The value of a censored trial is its cost up to the last evaluation of the target's metric.
    Metrics of diverged trainings are marked only if `outcomes` have the column DIVERGED. Costs count as
    usual.
    """
    target = read_target(metric)
    wanted = pl.DataFrame({"trial": list(trials)}, schema={"trial": pl.String})
    ends = outcomes.select(
        *("trial", "seed", "study", "status", "reason"),
        diverged=pl.col(DIVERGED) if DIVERGED in outcomes.columns else pl.lit(None, dtype=pl.String),
        value=final_value(metric),
        limit=pl.lit(None, dtype=pl.Float64) if target is None else final_value(_limit_of(metric)),
        awaits_probe=_awaits_probe(wanted, outcomes, metric),
    )
    if metrics is not None and "[" in metric:
        last = last_members(metrics, metric_family(metric)).filter(pl.col("name") == metric)
        ends = ends.join(last.select("trial", last="value"), on="trial", how="left", maintain_order="left")
        ends = ends.with_columns(value=pl.coalesce("last", "value"))
    found = wanted.join(ends, on="trial", how="left", maintain_order="left")
    stored, value = pl.col("status"), pl.col("value")
    is_cost = metric in COSTS or metric in MODEL_COSTS
    diverged = pl.lit(value=False) if is_cost else pl.col("diverged").is_not_null()
    broken = pl.lit(value=False) if is_cost else (stored == "failed") & _HAS_NAN
    status = (
        pl.when(stored.is_null() & pl.col("trial").is_in(list(begun)))
        .then(pl.lit(ValueStatus.BEGUN))
        .when(stored.is_null())
        .then(pl.lit(ValueStatus.MISSING))
        .when(broken)
        .then(pl.lit(ValueStatus.DIVERGED))
        .when(stored != "done")
        .then(stored)
        .when(value.is_finite())
        .then(pl.when(diverged).then(pl.lit(ValueStatus.DIVERGED)).otherwise(stored))
        .when(pl.lit(target is not None) & (value == math.inf))
        .then(pl.lit(ValueStatus.CENSORED))
        .when(value == math.inf if not find_metric(metric).higher_is_better else pl.lit(value=False))
        .then(pl.lit(ValueStatus.INFINITE))
        .when(value.is_null() & pl.col("awaits_probe"))
        .then(pl.lit(ValueStatus.PENDING))
        .otherwise(pl.lit(ValueStatus.NO_VALUE))
    )
    known = pl.when(pl.col("status") == ValueStatus.CENSORED).then("limit").otherwise("value")
    found = found.with_columns(status=status).with_columns(value=known)
    is_done = bool((found["status"] == ValueStatus.DONE).all())
    why = pl.lit("") if is_done else _why(study, metric)  # saves most of the time of large studies
    if find_metric(metric).measure is not None:  # what a plug-in measures is stored, if only as NaN
        forget = command_line("study", "forget", "STUDY", shared=True).replace("STUDY", "{}")
        older = pl.format(f"ended before {metric} was registered (to train again: {forget})", "study")
        why = pl.when((pl.col("status") == ValueStatus.NO_VALUE) & value.is_null()).then(older).otherwise(why)
    if target is not None:  # the row of a trial may have been copied without its metrics
        lost = pl.lit(f"left no history of {target.metric} in the store (activemem store check)")
        why = pl.when(pl.col("status") == ValueStatus.NO_VALUE).then(lost).otherwise(why)
    return found.select("trial", "seed", "value", "status", why=why)


def count_reasons(whys: Iterable[str]) -> dict[str, int]:
    """Count equal reasons for missing values. All diverged trainings have one reason, with one example."""
    counts = Counter(whys)
    diverged = [why for why in counts if why.startswith(_DIVERGED_START)]
    found = {why: count for why, count in counts.items() if why not in diverged}
    if diverged:
        more = sum(counts[why] for why in diverged) - 1
        found[diverged[0] + (f"; and {more} more" if more else "")] = more + 1
    return found


def final_value(metric: str) -> pl.Expr:
    """Return a Polars expression for the final value of a metric or cost."""
    if metric in COSTS:
        return pl.col(metric).cast(pl.Float64)
    named = pl.element().filter(pl.element().struct.field("name") == metric)
    return pl.col("metrics").list.eval(named.struct.field("value")).list.last()


def metric_names(outcomes: pl.DataFrame) -> set[str]:
    """Return the names of all metrics that at least one outcome has."""
    return set(outcomes["metrics"].explode().struct.field("name").drop_nulls())


def last_members(metrics: pl.DataFrame, family: str) -> pl.DataFrame:
    """Return the last value of each indexed metric of a family, such as `bleu[10-20]`, in each trial.

    The family is the name without the index, such as `bleu`.
    """
    members = metrics.filter(pl.col("name").str.starts_with(family + "["))
    last = members.filter(pl.col("step") == pl.col("step").max().over("trial"))
    return last.unique(["trial", "name"], keep="last", maintain_order=True)


def combined_status(statuses: Collection[str]) -> ValueStatus:
    """Return the status of a value of several trials: their first status in the order of `ValueStatus`."""
    return next((status for status in ValueStatus if status in statuses), ValueStatus.NO_VALUE)


def _why(study: str, metric: str) -> pl.Expr:
    """Return a Polars expression for why a trial has no value of a metric, "" if it needs no reason."""
    reason = pl.col("reason").map_elements(first_line, return_dtype=pl.String).fill_null("no reason stored")
    named = pl.col("status").is_in([ValueStatus.DIVERGED, ValueStatus.CENSORED])
    number = pl.when(named).then("value").map_elements(find_metric(metric).format, return_dtype=pl.String)
    rose = pl.format(f"the loss of seed {{}} {{}}, its {metric} is {{}}", "seed", "diverged", number)
    broke = pl.format("the loss of seed {} was {}", "seed", reason)
    strayed = pl.format(f"{_DIVERGED_START}{{}}", pl.coalesce(rose, broke))
    lossy = ", because its tokens lose text" if metric.endswith(_FAMILY) else ""
    words = {
        ValueStatus.DONE: "",
        ValueStatus.INFINITE: f"ended with an infinite {metric}",
        ValueStatus.CENSORED: "ended before the target",
        ValueStatus.BEGUN: "begun, but not ended",
        ValueStatus.PENDING: f"not probed yet ({probe_command(study)})",
        ValueStatus.NO_VALUE: f"ended without a finite {metric}{lossy}",
        ValueStatus.MISSING: ValueStatus.MISSING.text,
    }
    failure = pl.format("{}: {}", "status", reason)
    why = pl.col("status").replace_strict(words, default=failure, return_dtype=pl.String)
    if target := read_target(metric):
        unit = "" if find_metric(metric).unit else f" {target.currency}"
        censored = pl.format(f"did not reach {target} in {{}}{unit}", number)
        if target.currency == "seconds":  # the seconds differ from seed to seed, so the note names none
            censored = pl.lit(f"did not reach {target}")
        why = pl.when(pl.col("status") == ValueStatus.CENSORED).then(censored).otherwise(why)
    return pl.when(pl.col("status") == ValueStatus.DIVERGED).then(strayed).otherwise(why)


def _awaits_probe(wanted: pl.DataFrame, outcomes: pl.DataFrame, metric: str) -> pl.Expr:
    if metric_family(metric) in TUNED_METRICS:
        return final_value(TUNED_METRIC).is_null() & (pl.col("task") == "translation")
    if metric_family(metric) in PROBES:
        return pl.lit(value=True)
    if not find_metric(metric).is_probe:
        return pl.lit(value=False)
    recipes = outcomes.join(wanted, on="trial", how="semi")["recipe"].unique()
    measurable = [recipe for recipe in recipes if encoder_arguments(recipe) is not None]
    return final_value(PROBED_METRIC).is_null() & pl.col("recipe").is_in(measurable)


FindCourse = Callable[[str, pl.DataFrame], pl.DataFrame]
"""Returns one metric of some attempts at all steps, in the form of the store's metrics."""

TOTAL_COSTS: Mapping[Currency, pl.Expr] = {
    "steps": pl.col("steps").cast(pl.Float64),
    "flops": pl.col("flops"),
    "seconds": pl.col("seconds"),
    "tokens": (final_value("tokens_per_s") * pl.col("seconds")).round(),
}
"""The total cost of a stored trial in each unit, as a Polars expression; null if unknown."""


def cost_by_step(currency: Currency, step: pl.Expr) -> pl.Expr:
    """Return a Polars expression for the cost of a trial up to a step. All steps count as equally costly."""
    if currency == "steps":
        return step.cast(pl.Float64)
    found = TOTAL_COSTS[currency] * step / pl.col("steps")
    return found if currency == "seconds" else found.round()


def cost_per_epoch(target: str, outcomes: pl.DataFrame) -> dict[str, float]:
    """Return the mean cost of an epoch for each trial, in the unit of the target's cost, such as FLOPs."""
    found = read_target(target)
    if found is None:
        return {}
    mean = TOTAL_COSTS[found.currency] / pl.col("epochs")
    costs = outcomes.filter(pl.col("epochs") > 0).select("trial", mean)
    return dict(costs.drop_nulls().iter_rows())


def smallest_step(
    metric: Metric, settings: TrialSettings | None, per_epoch: float | None = None, *, largest: float = 0.0
) -> float:
    """Return the smallest difference, other than 0, that two values of a metric can have.

    For a target it is the trial's cost `per_epoch`, for lengths the step of the task's curriculum, otherwise
    one unit of the last digit in which values up to `largest` are shown.
    """
    if per_epoch is not None:
        return per_epoch
    if metric.steps_with_curriculum and settings is not None:
        return float(require_algorithmic(settings.task.name).length_step)
    return last_digit(metric.decimals, largest)


def without_whole_dev(
    course: pl.DataFrame, outcomes: pl.DataFrame, tasks: Mapping[str, TaskSettings]
) -> pl.DataFrame:
    """Drop a final dev metric of the whole split that follows values of a part of the split.

    With `[task] dev_tokens`, the evaluations during a training score the beginning of the dev split, and only
    the evaluation after the last epoch scores all of it. A history must not mix the two.
    """
    partly = [trial for trial, task in tasks.items() if getattr(task, "dev_tokens", None) is not None]
    if not partly:
        return course
    ends = outcomes.filter(pl.col("trial").is_in(partly), pl.col("status") == "done")
    step = pl.col("step")
    return (
        course.join(ends.select("trial", end="steps"), on="trial", how="left", maintain_order="left")
        .filter(
            ~(pl.col("name").str.starts_with("dev_") & (step == pl.col("end"))).fill_null(value=False)
            | (step.min().over("trial", "name") == step)  # the only value of a training
        )
        .drop("end")
    )


def with_targets(outcomes: pl.DataFrame, names: Collection[str], find_course: FindCourse) -> pl.DataFrame:
    """Add to done trials, for each target in `names`, a metric with the cost at which they reached it.

    `names` may also have other metrics, which are ignored. The cost of a trial that did not reach a target is
    infinite. A second metric has its cost up to the last evaluation.
    """
    for name in names:
        if (target := read_target(name)) is not None:
            outcomes = _with_target(outcomes, name, target, find_course)
    return outcomes


def _with_target(outcomes: pl.DataFrame, name: str, target: Target, find_course: FindCourse) -> pl.DataFrame:
    done = outcomes.filter(pl.col("status") == "done", pl.col("steps") > 0)
    course = find_course(target.metric, done).filter(pl.col("name") == target.metric)
    value = pl.col("value")
    # polars (2.1) orders NaN above every number, so `NaN >= target` alone would count as reached
    met = value.is_not_nan() & (value <= target.value if target.at_most else value >= target.value)
    step = pl.col("step")
    ends = course.group_by("trial").agg(first=step.filter(met).min(), last=step.max())
    first, last = (cost_by_step(target.currency, pl.col(each)) for each in ("first", "last"))
    values = done.join(ends, on="trial").select(
        "trial",
        target=pl.when(pl.col("first").is_null()).then(pl.lit(math.inf)).otherwise(first),
        limit=last,
    )
    outcomes = outcomes.join(values, on="trial", how="left", maintain_order="left")
    is_known = pl.col("target").is_not_null()
    outcomes = _with_metric(outcomes, name, pl.col("target"), is_known)
    return _with_metric(outcomes, _limit_of(name), pl.col("limit"), is_known).drop("target", "limit")


def _with_metric(outcomes: pl.DataFrame, name: str, value: pl.Expr, where: pl.Expr) -> pl.DataFrame:
    """Add a metric with this value to the outcomes for which `where` is true."""
    added = pl.concat_list("metrics", pl.struct(name=pl.lit(name), value=value))
    return outcomes.with_columns(metrics=pl.when(where).then(added).otherwise("metrics"))


def _limit_of(target: str) -> str:
    """Return the name of the metric for a target's limit, a trial's cost up to its last evaluation."""
    return f"limit of {target}"


_FAMILY = "_bits_per_byte"
BITS_PER_BYTE = frozenset({f"dev{_FAMILY}", f"test{_FAMILY}"})
"""The metrics that `with_bits_per_byte` computes."""


def with_bits_per_byte(
    outcomes: pl.DataFrame, names: Collection[str], tasks: Mapping[str, TaskSettings]
) -> pl.DataFrame:
    """Add the metric bits per byte, computed from the loss.

    `names` are the wanted metrics. Values that are already stored are kept.
    """
    wanted = sorted(BITS_PER_BYTE.intersection(names))
    distinct = {id(task): task for task in tasks.values()} if wanted else {}
    rates = {key: _tokens_per_byte(task) for key, task in distinct.items()}
    for name in wanted:
        split = name.removesuffix(_FAMILY)
        known = {trial: rates[id(task)].get(split) for trial, task in tasks.items()}
        scales = {trial: rate / math.log(2) for trial, rate in known.items() if rate is not None}
        scale = pl.col("trial").replace_strict(scales, default=None, return_dtype=pl.Float64)
        value = final_value(f"{split}_loss") * scale
        lacks = value.is_not_null() & final_value(name).is_null()
        outcomes = _with_metric(outcomes, name, value, lacks)
    return outcomes


def with_model_costs(
    outcomes: pl.DataFrame, names: Collection[str], trials: Mapping[str, Trial]
) -> pl.DataFrame:
    """Add these costs of the trials' models to their metrics. Rows in the store do not have them."""
    kinds = {id(trial.common): trial.common for trial in trials.values()} if names else {}
    for name in names:
        costs = {key: model_cost(name, each) for key, each in kinds.items()}
        known = {trial.id: float(costs[id(trial.common)]) for trial in trials.values()}
        value = pl.col("trial").replace_strict(known, default=None, return_dtype=pl.Float64)
        outcomes = _with_metric(outcomes, name, value, value.is_not_null())
    return outcomes


def _tokens_per_byte(task: TaskSettings) -> dict[str, float]:
    if not isinstance(task, LanguageModelSettings) or isinstance(task.corpus, OwnDocuments):
        return {}
    if task.tokens == "characters" and task.batching != "sentences":
        return dict.fromkeys(("dev", "test"), 1.0)
    if task.tokens != "words" or task.batching != "stream":
        return {}
    return {split: words / size for split, (words, size) in corpus_of_task(task).scored_words.items()}
