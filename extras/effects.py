"""Effects of factors and of their pairs on a metric, from a linear model of the cells (statsmodels).

The model has the mean, the seeds as blocks, every factor, and every interaction of two factors that the cells
can estimate. In all means and effects, the levels of the other factors have equal weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np
import polars as pl

from activemem import (
    FigureContent,
    PluginFigure,
    PluginTable,
    ResultCell,
    ResultRow,
    ShownResults,
    TableContent,
    register_kind,
)

Term = tuple[str, ...]
"""A factor, the two factors of an interaction, or `SEEDS`."""

SEEDS: Term = ("seed",)
MISSING = "–"


class Estimate(NamedTuple):
    """A mean or a difference, with the ends of its 95 % interval, which are None without noise."""

    value: float
    low: float | None = None
    high: float | None = None


class FactorModel:
    """A linear model of a metric, fitted by least squares to the trials that have a value.

    `levels` has the observed levels of each factor. `estimable` are the terms that the cells can separate
    from all others, and `shares` their type III sums of squares, divided by the total around the mean. `p`
    has the p-values of F tests, corrected by Holm's procedure. Variances of cells may differ: tests and
    intervals have the HC3 covariance (MacKinnon and White 1985). It does not exist if a trial decides a
    coefficient alone; then all cells have one variance. Cells that share a trial are a cluster.
    """

    def __init__(self, results: ShownResults, metric: str) -> None:
        from statsmodels.regression.linear_model import OLS  # noqa: PLC0415 -- an extra
        from statsmodels.stats.multitest import multipletests  # noqa: PLC0415 -- as above

        self.values = frame = results.values(metric)
        there = {name: set(frame[name]) for name in frame.columns[1:-1]}
        self.levels = {
            name: [each for each in names if each in there[name]] for name, names in results.factors.items()
        }
        mains: list[Term] = [(name,) for name, kept in self.levels.items() if len(kept) > 1]
        pairs: list[Term] = [(one, other) for (one,), (other,) in combinations(mains, 2)]
        self.levels["seed"] = sorted(there["seed"])
        self._codes = {name: _sum_codes(len(kept)) for name, kept in self.levels.items() if len(kept) > 1}
        blocks = [(), SEEDS] if len(there["seed"]) > 1 else [()]
        self.estimable, self.shares, self.residual_share = list[Term](), dict[Term, float](), 0.0
        self.p, self.covariance, self.degrees = dict[Term, float](), "", 0
        if not mains:
            return
        separable = self._separable([*blocks, *mains, *pairs])
        # a factor that is not separable stays, so that the other terms are not charged with it
        self._terms = [*blocks, *mains, *(pair for pair in pairs if pair in separable)]
        self.estimable = [term for term in self._separable(self._terms) if term not in blocks]
        design, y = self._design(self._terms), frame["value"].to_numpy()
        with catch_warnings(action="ignore"):  # that confounded factors make the design rank-deficient
            fit = self._fit = OLS(y, design).fit()
        self.degrees, total = int(fit.df_resid), float(((y - y.mean()) ** 2).sum())
        self.residual_share = fit.ssr / total if total > 0 else 0.0
        for term in [*blocks[1:], *self.estimable] if total > 0 else ():
            place = self._place(term)
            inverse = np.linalg.pinv(fit.normalized_cov_params[place, place], hermitian=True)
            self.shares[term] = float(fit.params[place] @ inverse @ fit.params[place]) / total
        if self.degrees < 1 or fit.ssr <= 1e-24 * float(y @ y):
            return
        if frame["trial"].is_duplicated().any():
            self.covariance, groups = "cluster", {"groups": np.unique(frame["trial"], return_inverse=True)[1]}
        else:
            is_free = fit.get_influence().hat_matrix_diag.max() < 1 - 1e-8
            self.covariance, groups = "HC3" if is_free else "nonrobust", {}
        with catch_warnings(action="ignore"):  # as above
            self._fit = OLS(y, design).fit(cov_type=self.covariance, cov_kwds=groups, use_t=True)
        if groups:
            self.degrees = len(set(groups["groups"])) - 1
        eye = np.eye(design.shape[1])
        raw = [float(self._fit.f_test(eye[self._place(term)]).pvalue) for term in self.estimable]
        if raw:
            adjusted: Any = multipletests(raw, method="holm")[1]
            self.p = dict(zip(self.estimable, map(float, adjusted), strict=True))

    def means(self, *factors: str) -> dict[tuple[str, ...], Estimate]:
        """Return the mean at each observed level of a factor, or at each pair of levels of two factors.

        It is empty if a factor cannot be estimated. An interaction that cannot be estimated counts as zero.
        """
        if any((name,) not in self.estimable for name in factors):
            return {}
        cells = list(product(*(self.levels[name] for name in factors)))
        rows = [self._row(dict(zip(factors, cell, strict=True))) for cell in cells]
        return dict(zip(cells, self._estimates(rows), strict=True))

    def deviations(self, factor: str) -> dict[str, Estimate]:
        """Return the mean at each observed level of an estimable factor, minus the mean over all levels."""
        rows = [self._row({factor: level}) - self._row({}) for level in self.levels[factor]]
        return dict(zip(self.levels[factor], self._estimates(rows), strict=True))

    def difference(self, term: Term) -> Estimate:
        """Return the second level minus the first; of two factors, the difference of two such differences."""
        row = 0.0
        for signs in product((0, 1), repeat=len(term)):
            at = {name: self.levels[name][sign] for name, sign in zip(term, signs, strict=True)}
            row = row + (-1) ** (len(term) - sum(signs)) * self._row(at)
        return self._estimates([row])[0]

    def note(self) -> str:
        """Return a sentence about the tests."""
        if not self.covariance:
            return "Without an estimate of the noise there are no intervals and no tests."
        variance = {"nonrobust": "one variance", "cluster": "a variance for each trial"}
        spread = variance.get(self.covariance, "a variance for each cell (HC3)")
        return (
            f"p: F test, {self.degrees} degrees of freedom, {spread}; Holm over {len(self.p)} "
            f"test{'s' * (len(self.p) != 1)}."
        )

    def _row(self, at: Mapping[str, Any]) -> Any:
        """Return the weights of the coefficients at these levels, averaged over all other factors."""
        coded = {name: codes[:1] * 0.0 for name, codes in self._codes.items()}
        coded |= {name: self._codes[name][[self.levels[name].index(level)]] for name, level in at.items()}
        return np.hstack([_product(coded, term) for term in self._terms])[0]

    def _design(self, terms: Sequence[Term]) -> Any:
        coded = {
            name: codes[[self.levels[name].index(level) for level in self.values[name]]]
            for name, codes in self._codes.items()
        }
        return np.hstack([_product(coded, term) for term in terms])

    def _place(self, term: Term) -> slice:
        sizes = [_size(self._codes, each) for each in self._terms]
        at = self._terms.index(term)
        return slice(sum(sizes[:at]), sum(sizes[: at + 1]))

    def _separable(self, terms: Sequence[Term]) -> list[Term]:
        """Return the terms whose coefficients are unique in a fit of all of them."""
        design = self._design(terms)
        # a coefficient is unique if pinv(X) X maps it to itself
        lost = np.abs(np.eye(design.shape[1]) - np.linalg.pinv(design, rcond=1e-8) @ design).max(axis=1)
        names = [term for term in terms for _ in range(_size(self._codes, term))]
        mixed = {name for name, each in zip(names, lost, strict=True) if each > 1e-6}
        return [term for term in terms if term not in mixed]

    def _estimates(self, rows: Sequence[Any]) -> list[Estimate]:
        if not self.covariance:
            return [Estimate(float(row @ self._fit.params)) for row in rows]
        found = self._fit.t_test(np.array(rows))
        return [Estimate(*each) for each in zip(found.effect, *found.conf_int().T, strict=True)]


def _sum_codes(count: int) -> Any:
    """Return the codes of each level: 1 for its own column, −1 everywhere for the last level."""
    return np.vstack([np.eye(count - 1), -np.ones(count - 1)])


def _product(coded: Mapping[str, Any], term: Term) -> Any:
    """Return the columns of a term: all products of the columns of its factors."""
    found = np.ones((len(next(iter(coded.values()))), 1))
    for name in term:
        found = (found[:, :, None] * coded[name][:, None, :]).reshape(len(found), -1)
    return found


def _size(codes: Mapping[str, Any], term: Term) -> int:
    return math.prod(codes[name].shape[1] for name in term)


@register_kind("effects")
class EffectsTable(PluginTable):
    """the effect of every varied factor on a metric."""

    value: str
    """the metric, or a cost"""

    extra = "stats"

    def check(self, design: Any) -> Iterable[tuple[tuple[str, ...], str]]:
        """Yield a fault if no factor varies."""
        return _model_faults(self.select, design)

    def fill(self, results: ShownResults) -> TableContent:
        """Fit the model; return the rows of factors, interactions, and what no factor explains."""
        model, count = FactorModel(results, self.value), len(results.factors)
        seeds = f"{len(results.seeds)} seeds as blocks" if len(results.seeds) > 1 else "one seed"
        lost = sum(pair not in model.estimable for pair in combinations(results.factors, 2))
        notes = [
            "Effect of a factor: with two levels, the second minus the first; with more, each level minus the"
            " mean of all. Effect of an interaction of two levels with two: the effect of one factor at the"
            " second level of the other minus that at its first. The levels of the other factors have equal"
            " weights."
        ]
        notes += (
            [f"Not separable in these cells and assumed to be zero: {lost} interactions."] if lost else []
        )
        notes += ["In brackets: 95 % interval of each single effect."] if model.covariance else []
        share = "Share: η², of the sum of squares of all values"
        whole = sum(model.shares.values()) + model.residual_share
        uneven = "; because combinations differ in their numbers of values, shares do not add up to 100 %"
        notes += [model.note(), share + (uneven if abs(whole - 1) > 0.0005 else "") + "."]
        return TableContent(
            columns=["effect", "p", "share"],
            rows=list(_rows(model, results, results.metric(self.value))),
            summary=f"effects of {count} factor{'s' * (count > 1)} over {results.cells} cells, with {seeds}",
            notes=notes,
        )


def _rows(model: FactorModel, results: ShownResults, metric: Any) -> Iterator[ResultRow]:
    count = len(model.values)

    def number(value: float | None, text: str) -> ResultCell | None:
        return None if value is None else ResultCell(value=value, text=text, count=1)

    def share(value: float) -> ResultCell | None:
        return number(value, f"{100 * value:.1f} %")

    def effect(found: Estimate) -> ResultCell:
        text = metric.format(found.value)
        return ResultCell(**found._asdict(), text=f"+{text}" if found.value > 0 else text, count=count)

    def cells(term: Term) -> list[ResultCell | None]:
        if term not in model.estimable:
            alone = [name for name in term if len(model.levels[name]) < 2]
            why = "These cells cannot separate it from the other effects."
            why = f"Only one level of {' and of '.join(alone)} has a value." if alone else why
            return [ResultCell(text=MISSING, note=why if count else ""), None, None]
        is_single = all(len(results.factors[name]) == 2 for name in term)
        p = model.p.get(term)
        words = "" if p is None else "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")
        return [
            effect(model.difference(term)) if is_single else None,
            number(p, words),
            share(model.shares[term]),
        ]

    for name, levels in results.factors.items():
        texts = list(levels.values())
        if len(texts) == 2:
            yield ResultRow(name=f"{name}: {' → '.join(texts)}", cells=cells((name,)), group="factors")
            continue
        yield ResultRow(name=name, cells=cells((name,)), group="factors")
        found = model.deviations(name) if (name,) in model.estimable else {}
        for level, text in levels.items():
            first = effect(found[level]) if level in found else ResultCell(text=MISSING) if found else None
            yield ResultRow(name=f"{name}: {text}", cells=[first, None, None], group="factors")
    for pair in combinations(results.factors, 2):
        if pair in model.estimable:
            yield ResultRow(name=" × ".join(pair), cells=cells(pair), group="interactions")
    besides = {"seeds": model.shares.get(SEEDS), "residual": model.residual_share}
    for name, value in besides.items():
        if value is not None and model.shares:
            yield ResultRow(name=name, cells=[None, None, share(value)], group="besides")


@register_kind("effects")
class EffectsFigure(PluginFigure):
    """the mean of a metric at each level of every varied factor, or of two factors together."""

    value: str
    """the metric, or a cost"""
    x: str | None = None
    """with `series`: the factor whose levels are on the horizontal axis"""
    series: str | None = None
    """with `x`: the factor with one line for each level, at most 6 (default: every factor by itself)"""

    extra = "stats"

    def check(self, design: Any) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield a fault if no factor varies, or if `x` or `series` is set alone."""
        yield from _model_faults(self.select, design)
        if (self.x is None) != (self.series is None):
            named = "series" if self.x is None else "x"
            yield (named,), "expected x and series, for two factors together, or neither of them"
        elif self.series is not None:
            yield from self.series_faults(self.series, design.known_levels)

    def plot(self, results: ShownResults) -> FigureContent:
        """Fit the model; draw a row of means for each factor, or a line for each level of `series`."""
        model, metric = FactorModel(results, self.value), results.metric(self.value)
        ends = "whisker: 95 % interval" if model.covariance else "without intervals"
        notes = [
            "Point: mean over the levels of the other factors with equal weights, by a linear model with"
            f" seeds as blocks; {ends}."
        ]
        if self.x is not None and self.series is not None:
            if not {(self.x, self.series), (self.series, self.x)} & set(model.estimable):
                notes.append("This interaction is not estimable from the cells, and assumed to be zero.")
            return _interaction(model, results, metric, (self.x, self.series), notes)
        notes.append(f"Dotted: the mean of all values. η²: share of the sum of squares. {model.note()}")
        return _factor_means(model, results, metric, notes)


def _factor_means(
    model: FactorModel, results: ShownResults, metric: Any, notes: Sequence[str]
) -> FigureContent:
    rows = list[dict[str, Any]]()
    for factor, levels in results.factors.items():
        found = model.means(factor)
        for level, name in levels.items():
            value, low, high = found.get((level,), (None, None, None))
            rows.append({"factor": factor, "level": name, "mean": value, "low": low, "high": high})
    heads = {
        factor: f"{factor}   η² {100 * model.shares[factor,]:.1f} %" if (factor,) in model.shares else factor
        for factor in results.factors
    }

    def draw(axes: Any) -> None:
        at, ticks = 0.0, list[tuple[float, str]]()
        for factor in results.factors:
            own = [row for row in rows if row["factor"] == factor]
            ticks.append((at, heads[factor]))
            places = [at + 1.0 + number for number in range(len(own))]
            known = [(row, place) for row, place in zip(own, places, strict=True) if row["mean"] is not None]
            ticks += [(place, row["level"]) for row, place in zip(own, places, strict=True)]
            axes.plot(
                [row["mean"] for row, _ in known], [place for _, place in known], color="0.75", lw=0.8, ls="-"
            )
            for row, place in known:
                if row["low"] is not None:
                    axes.plot([row["low"], row["high"]], [place, place], color="0.5", lw=0.9, ls="-")
                axes.plot(row["mean"], place, "o", color="black")
                axes.annotate(
                    metric.format(row["mean"]), (1.02, place), xycoords=("axes fraction", "data"), va="center"
                )
            at = places[-1] + 1.4
        if len(model.values):
            axes.axvline(model.values["value"].mean(), color="0.6", lw=0.8, ls=":")
        axes.set_yticks([place for place, _ in ticks], [text for _, text in ticks])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_ylim(at - 0.4, -0.8)
        axes.set_xlabel(metric.title)

    return FigureContent(
        draw=draw,
        data=pl.DataFrame(rows, infer_schema_length=None),
        width=260,
        height=12.0 * (len(rows) + 1.6 * len(heads)),
        summary="at the levels of each factor",
        notes=notes,
    )


def _interaction(
    model: FactorModel, results: ShownResults, metric: Any, factors: tuple[str, str], notes: Sequence[str]
) -> FigureContent:
    x, series = factors
    found, (xs, lines) = model.means(*factors), (results.factors[x], results.factors[series])
    rows = [
        {x: xs[at], series: lines[line], "mean": each.value, "low": each.low, "high": each.high}
        for (at, line), each in found.items()
    ]

    def draw(axes: Any) -> None:
        for number, (line, name) in enumerate(lines.items()):
            shift = 0.04 * (number - (len(lines) - 1) / 2)
            known = [(place + shift, found[at, line]) for place, at in enumerate(xs) if (at, line) in found]
            (drawn,) = axes.plot(
                [at for at, _ in known], [each.value for _, each in known], marker="o", label=name
            )
            for at, each in known:
                if each.low is not None:
                    axes.plot([at, at], [each.low, each.high], color=drawn.get_color(), lw=0.9, ls="-")
        axes.set_xticks(range(len(xs)), xs.values())
        axes.set_xlabel(x)
        if rows:
            axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5))

    data = pl.DataFrame(rows, infer_schema_length=None)
    return FigureContent(draw=draw, data=data, summary=f"by {x} and {series}", notes=notes)


def _model_faults(select: dict[str, Any], design: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    kept = {name: len(levels) for name, levels in design.known_levels.items() if name != "seed"}
    kept |= {
        name: len(each) if isinstance(each, list) else 1 for name, each in select.items() if name in kept
    }
    if max(kept.values(), default=0) < 2:
        yield ("kind",), "expected a factor other than seed with several levels, got none"
