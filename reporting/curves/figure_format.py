"""The file formats of figures."""

from typing import Literal

FigureFormat = Literal["svg", "png", "pdf"]
