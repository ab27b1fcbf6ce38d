"""A figure is drawn from its data alone: one curve gives the same bytes each time on one matplotlib.

`figure` lays out panels, each drawn by the content of its kind on a `panel` with its `axis_scale`.
`label_placement` puts names where there is room; `style` is the look of all.
"""
