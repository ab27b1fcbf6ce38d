"""Live output on standard error, of which nothing stays on a terminal.

`run` carries a study out and sums it up, `until_decided` reads the options of a run and adds seeds to it,
`watch` follows one that runs elsewhere, `display` shows all of them.
"""
