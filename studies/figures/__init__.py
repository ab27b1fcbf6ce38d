"""A figure is drawn from its data alone: one curve gives the same bytes each time on one matplotlib."""

from .page import FORMATS, Form, draw

__all__ = ["FORMATS", "Form", "draw"]
