"""Live output on standard error, of which nothing stays on a terminal.

`requests` reads the options of a run, `run` carries a study out and sums it up, `until_decided` adds seeds
to it, `watch` follows one that runs elsewhere, `display` shows both, `nodes` lists those of a cluster,
`downloads` shows a download.
"""
