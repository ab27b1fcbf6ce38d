"""The keys of `[runs]`: the files of runs that another program has trained, and what their columns mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..schema.settings import Names, NonEmptyNames
from ..text.strict_model import StrictModel

JUDGED = "judged, not trained here"
"""The beginning of the origin of every number of runs that another program has trained."""

Form = Literal["rows", "wide", "curves", "lm-eval", "summary"]
Better = Literal["lower", "higher"]


class RunMetric(StrictModel):
    """`[runs.metrics.NAME]`: a metric of the runs, and which of its values are better."""

    better: Better | None = None
    """whether lower or higher values are better; needed unless the name says it, as `loss` does"""
    column: str | None = None
    """its column (default: its name)"""
    decimals: Annotated[int, Field(ge=0, le=12)] | None = None
    """the decimals that are shown (default: two digits of the median standard deviation)"""
    share: bool | None = None
    """whether its values cannot leave 0 to 1 (default: if higher is better and none does)"""


class RunsSettings(StrictModel, table="runs"):
    """`[runs]`: runs that another program has trained, for `activemem judge`."""

    file: NonEmptyNames
    """a file beside this one, several, or a pattern whose holes are columns: `"tb/{arm}_seed{seed}.csv"`"""
    form: Form | None = None
    """the form of the files: rows (one a run), wide (a column a seed), curves (the last step counts), lm-eval
    (results of lm-evaluation-harness) or summary (mean, spread and n); default: as the columns look"""
    factors: Names = ()
    """the columns that name what is compared (default: those that look so)"""
    metrics: dict[str, RunMetric] = Field(default={})
    """the metrics by the names that claims use (default: the one column that looks so)"""
    seed: str | None = None
    """the column of seeds, `""` for none (default: the one that is called so)"""
    names: str | None = None
    """in a chart exported from W&B, what the names of runs mean, as in `"{arm}-{seed}"`"""
    pair: Literal["none", "seed"] = "none"
    """seed, if equal seeds mean the same order of data and the same test data; none, for independent runs"""
    failed: Literal["undecided", "left-out"] = "undecided"
    """what runs without a final value do to a claim: leave it undecided, or be left out, because they failed
    for reasons that have nothing to do with their results"""
    tries: int | None = Field(default=None, ge=1)
    """how many levels were tried in all, shown or not; p is multiplied by it"""
    planned: int | None = Field(default=None, ge=1)
    """the number of runs of each cell that was fixed before any result"""
    spread: Literal["sd", "se"] | None = None
    """in a summary, whether the spread is the standard deviation or the standard error of the mean"""
