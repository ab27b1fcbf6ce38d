"""Drawing of figures from their data alone: one curve always gives the same bytes with one matplotlib.

`figure` lays out panels, each drawn by the content of its kind on a `panel` with its `axis_scale`.
`label_placement` puts names where there is room; `style` is the look of all.
"""
