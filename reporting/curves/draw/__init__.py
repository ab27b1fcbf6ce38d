"""Drawing of figures from their data: the same curve and matplotlib version give the same bytes.

`figure` lays out panels, each drawn by the content of its kind on a `panel` with its `axis_scale`.
`label_placement` places names without overlaps; `style` has colours, fonts and lines.
"""
