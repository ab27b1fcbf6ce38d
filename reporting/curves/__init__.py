"""A figure is data before it is drawn.

`curve` is that data, made by the kind of the figure in `kinds`. `cell_figure` is what all
figures of cells have in common, and `samples` are their values. `draw` makes the picture.
"""

from typing import Literal

FigureFormat = Literal["svg", "png", "pdf"]
"""The file formats of figures."""
