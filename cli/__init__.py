"""The command line is the only folder that prints.

`app` is the program and `commands` its groups; `views` turn results into lines, `live` shows what runs.
`options` are shared by commands, `output` has the two streams and exit statuses, `machine_settings` reads
activemem.toml.
"""
