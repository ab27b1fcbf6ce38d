"""A figure is drawn from its data alone: one curve gives the same bytes each time on one matplotlib."""

from .figure import FORMATS, FigureFormat, draw

__all__ = ["FORMATS", "FigureFormat", "draw"]
