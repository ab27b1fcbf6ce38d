"""What runs is shown on standard error, and nothing of it stays on a terminal.

`run` carries a study out and sums it up, `watch` looks at one that runs elsewhere, `display` shows both,
`nodes` are those of a cluster, `downloads` shows a download.
"""
