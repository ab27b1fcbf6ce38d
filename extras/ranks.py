"""A table of mean ranks, which compares methods over tasks with different scales (Demšar 2006)."""

import polars as pl

from activemem import PluginTable, ResultCell, ResultRow, ShownResults, TableContent, register_kind


@register_kind("ranks")
class Ranks(PluginTable):
    """Mean rank of each level of a factor, over the other factors and the seeds."""

    value: str
    """the metric"""
    rows: str
    """the factor whose levels are ranked; the best has rank 1, and equal levels share a rank"""

    def fill(self, results: ShownResults) -> TableContent:
        values, levels = results.values(self.value), results.factors[self.rows]
        others = [*(name for name in results.factors if name != self.rows), "seed"]
        rank = pl.col("value").rank(descending=bool(results.metric(self.value).higher_is_better))
        whole = values.filter(pl.len().over(others) == len(levels)).with_columns(rank=rank.over(others))
        rows = list[ResultRow]()
        for level, name in levels.items():
            own = whole.filter(pl.col(self.rows) == level)["rank"].to_list()
            mean = sum(own) / len(own) if own else None
            rows.append(ResultRow(name=name, cells=[ResultCell(value=mean, count=len(own))]))
        told = f"mean ranks over {whole.select(others).n_unique()} cells and seeds"
        return TableContent(columns=["rank ↓"], rows=rows, corner=self.rows, summary=told)
