"""Figures: their data, and the code that draws them.

`curve` is the data of a figure, made by its kind in `kinds`. `cell_figure` has what all figures of cells
share, and `figure_cells` their values. `draw` makes the picture in a `figure_format`.
"""
