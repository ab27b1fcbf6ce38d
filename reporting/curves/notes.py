"""The sentences around a figure: what it shows, what centre and interval are, what is left out.

They tell how many seeds are behind each mark, and how many trials failed, were stopped early or have not run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import polars as pl

from ...studies.catalog.metrics import METRICS_AND_COSTS, Metric, find_metric
from ...studies.planning.probe_targets import probe_command
from ...studies.planning.trial_values import ValueStatus
from ...studies.presentation.curve import INDEX_AXES, TIME_AXES, Band, CurveSpec
from ...studies.presentation.metric_words import difference_sentence
from ...studies.presentation.selection import describe_levels
from ...studies.schema.level_names import level_name, one_line
from ...studies.schema.settings import Level, TrialSettings
from ...studies.study import Study
from ..outcomes import omitted_trials
from .curve import MIN_BOX_VALUES, Bars, Boxes, Cloud, Content, Line, Lines, Matrix, Panel
from .samples import Samples

BANDS: Mapping[Band, str] = {
    "sd": "± 1 s.d",
    "se": "± 1 standard error",
    "ci": "95 % t interval",
    "minmax": "lowest to highest",
}
"""How a caption names each interval."""


def default_caption(
    spec: CurveSpec, metric: Metric, x_metric: Metric | None, fixed: Mapping[str, Level]
) -> str:
    """A caption from the specification, such as `Loss, by epoch; task sort`: metric, axes, fixed factors."""
    what = metric.axis_title or metric.title
    axes = [name for name in (spec.y, spec.x) if name is not None]
    over = " and ".join(_lower(axis_title(name, metric, x_metric)).partition(",")[0] for name in axes)
    comma = "," if "," in what else ""
    by = f"{comma} {'against' if spec.kind == 'pareto' else 'by'} {over}"
    return "; ".join([what + by, *(f"{name} {level_name(level)}" for name, level in fixed.items())])


def setting_notes(
    fixed: Mapping[str, Level], metrics: Sequence[Metric], settings: Collection[TrialSettings]
) -> Iterator[str]:
    """The levels that a caption of the study's own does not tell, and in what trials differ."""
    if fixed:
        yield f"At {describe_levels(fixed)}."
    if sentence := difference_sentence(metrics, settings):
        yield sentence


def axis_title(name: str, metric: Metric, x_metric: Metric | None = None) -> str:
    """The title of an axis: a cost, a time, an index of the metric, another metric or a factor.

    `x_metric` is the metric along the bottom with the titles that are true of the figure's trials.
    """
    if name in INDEX_AXES:
        known = dict(zip(INDEX_AXES, metric.index_titles, strict=False))
        return known.get(name, "Index")
    if name in METRICS_AND_COSTS:
        shown = x_metric or METRICS_AND_COSTS[name]
        return shown.axis_title or shown.title
    return TIME_AXES.get(name, one_line(name))


def _lower(text: str) -> str:
    """A title as it is written in the middle of a sentence."""
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def note_sentences(
    spec: CurveSpec, panels: Sequence[Panel], samples: Samples, study: Study
) -> tuple[str, ...]:
    """Every sentence below a figure but its provenance."""
    return (
        *_centers(spec, panels, samples),
        *_marks(spec, panels, study.paper),
        *_noted(spec, panels, samples),
        *omitted_trials(samples.gaps, len(samples.trials), probe_command(study.name)),
    )


def _centers(spec: CurveSpec, panels: Sequence[Panel], samples: Samples) -> Iterator[str]:
    """What a line, a bar, a box or a cell stands for, and over how many values."""
    if samples.frame.is_empty():
        what = "probed" if samples.gaps[ValueStatus.PENDING] else "done"
        yield f"Nothing to draw: no trial of it is {what}."
        return
    if spec.kind == "box":
        yield from _boxes(panels, "quantiles" if find_metric(spec.value).has_quantiles else "values")
        return
    low, high = _seeds(spec, samples.frame)
    what = _center_mark(panels[0].content)
    if high == 1:
        yield f"{what}: one seed."
        return
    count = f"{high}" if low == high else f"{low} to {high}"
    part = {"line": "band", "bar": "whisker", "pareto": "whisker"}.get(spec.kind)
    yield f"{what}: mean of {count} seeds" + (f"; {part}: {BANDS[spec.band]}." if part else ".")


def _noted(spec: CurveSpec, panels: Sequence[Panel], samples: Samples) -> Iterator[str]:
    """What a metric has beside its figure, panel by panel."""
    if samples.noted:
        title = find_metric(find_metric(spec.value).noted).title
        names = [" ".join(filter(None, (panel.row, panel.title))) for panel in panels]
        told = (f"{names[panel]} {', '.join(each.values())}".strip() for panel, each in samples.noted.items())
        if any(isinstance(panel.content, Matrix) and panel.content.pairs for panel in panels):
            yield "Line below two columns: a pair that is told of here."
        yield f"{title}: {'; '.join(told)}."


def _center_mark(content: Content) -> str:
    """The name of the mark that shows a centre."""
    match content:
        case Lines():
            return "Line"
        case Bars():
            return "Point" if content.points else "Bar"
        case Matrix():
            return "Number" if content.is_readable else "Shade"
        case _:
            return "Point"


def _seeds(spec: CurveSpec, frame: pl.DataFrame) -> tuple[int, int]:
    """The fewest and the most values at a position; a point of a cloud is one cell with all its seeds."""
    places = ("panel", "cell") if spec.kind == "pareto" else ("panel", "series", "x", "y")
    counts = frame.group_by(places).len()["len"]
    return min(counts), max(counts)


def _boxes(panels: Sequence[Panel], of: str) -> Iterator[str]:
    """What the parts of a box are, and how many values or quantiles it has."""
    boxes = [
        box for panel in panels if isinstance(panel.content, Boxes) for box in panel.content.boxes if box.n
    ]
    counts = [box.n for box in boxes]
    n = f"{counts[0]:,}" if len(set(counts)) == 1 else f"{min(counts):,} to {max(counts):,}"
    if max(counts) >= MIN_BOX_VALUES:
        yield f"Box: median and quartiles of {n} {of}."
        yield "Whisker: to the last value within 1.5 interquartile ranges; dots: those beyond."
    if min(counts) < MIN_BOX_VALUES:
        yield f"Dots: the values themselves, where they are fewer than {MIN_BOX_VALUES}."


def _marks(spec: CurveSpec, panels: Sequence[Panel], paper: str | None) -> Iterator[str]:
    """What a figure shows besides its centres."""
    contents = [panel.content for panel in panels]
    if any(isinstance(each, Lines) and each.context for each in contents):
        named = [line.name for panel in panels for line in _foreground_lines(panel.content) if line.accent]
        yield "Grey: the other panels' lines" + (f"; in colour: {named[0]}." if named else ".")
    if any(isinstance(each, Cloud) and len(each.front) > 1 for each in contents):
        yield "Steps: the front that no point passes."
    if any(_has_published(each) for each in contents):
        yield f"Diamonds: published, {paper} {spec.published}."


def _foreground_lines(content: Content) -> tuple[Line, ...]:
    """The lines of a panel without those in its background."""
    return content.lines if isinstance(content, Lines) else ()


def _has_published(content: object) -> bool:
    """Whether a panel shows a number of the paper."""
    match content:
        case Lines():
            return any(line.published for line in content.lines)
        case Bars():
            return any(bar.published is not None for bar in content.bars)
        case _:
            return False
