"""A figure is drawn from its data alone: one curve gives the same bytes each time on one matplotlib.

`figure` lays out panels, each drawn by `panel` with its `axis_scale`; `lines`, `bars`, `boxes`, `heatmap`,
`pareto`, `effects`, `interaction` and `scaling` are the kinds, and `search` has those of searches.
`label_placement` and `row_labels` put names where there is room; `style` is the look of all.
"""

from .figure import draw

__all__ = ["draw"]
