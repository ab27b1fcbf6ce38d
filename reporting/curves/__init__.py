"""Figures: their data, and the code that draws them.

`curve` is the data of a figure, made by its kind in `kinds`. `cell_figure` has what all figures of cells
share, and `samples` their values. `draw` makes the picture.
"""

from typing import Literal

FigureFormat = Literal["svg", "png", "pdf"]
"""The file formats of figures."""
