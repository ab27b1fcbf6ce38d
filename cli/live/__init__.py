"""What runs is shown on standard error, and nothing of it stays on a terminal.

`requests` is what the options of a run ask for, `run` carries a study out and sums it up, `until_decided`
adds seeds to it, `watch` looks at one that runs elsewhere, `display` shows both, `nodes` are those of a
cluster, `downloads` shows a download.
"""
