"""Drawing of figures.

The same data and the same matplotlib version always give the same bytes. `figure` lays out the page. On each
`panel`, the figure's kind draws its content and places the names. `style` has colours, fonts and lines.
`inline` makes the figure a part of a web page.
"""
