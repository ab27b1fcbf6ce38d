"""Drawing of figures; the same data and matplotlib version always give the same bytes.

`figure` lays out the page. On each `panel`, the figure's kind draws its content and places the names. `style`
has colours, fonts and lines.
"""
