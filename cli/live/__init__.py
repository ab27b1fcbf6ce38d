"""What runs is shown on standard error, and nothing of it stays on a terminal.

`run` carries a study out and sums it up, `display` shows it, `nodes` are those of a
cluster, `downloads` shows a download.
"""
