"""Figures as data, and the drawing of them.

`curve` is the data of a figure, made by its kind in `kinds`. `cell_figure` is what all
figures of cells have in common, and `samples` are their values. `draw` makes the picture.
"""

from typing import Literal

FigureFormat = Literal["svg", "png", "pdf"]
"""The file formats of figures."""
