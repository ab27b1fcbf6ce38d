"""A figure is data before it is drawn.

`curve` is that data and `build` makes it: `samples` are its values, `aggregate` puts them into panels,
`figure_names` and `notes` are its words. `summaries` are figures over whole designs: `effect_figures`,
`profiles` and `scaling`; `search` has those of searches. `draw` makes the picture.
"""

from typing import Literal

FigureFormat = Literal["svg", "png", "pdf"]
"""What a figure can be drawn as."""
