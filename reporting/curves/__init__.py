"""Figures: their data, and the code that draws them.

`curve` is the data of a figure, made by its kind in `kinds`. `figure_cells` has the values that figures of
cells share, and `cell_figure` groups them. `draw` makes the picture in a `figure_format`.
"""
