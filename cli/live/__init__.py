"""What runs is shown on standard error, and nothing of it stays on a terminal.

`run` carries a study out and sums it up, `display` shows it, `downloads` shows a download.
"""
