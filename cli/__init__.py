"""The command line, the only folder that prints.

`app` is the program and `commands` its groups; `serve` and `agent_guide` are commands of their own. `views`
turn results into lines, `pages` are what commands print as JSON, `live` shows running studies. `options` are
shared by commands, some of them by `study run` and `study plan` alone. `plan_costs` and `plan_devices` are
parts of a plan, `plan_page` is a plan as JSON, `coordinates` describes a check of widths. `output` has the
two streams and exit statuses, `settings_file` finds activemem.toml, `machine_settings` reads it,
`missing_results` says which store has no results, and `plugin_loading` loads plug-ins before a command runs.
"""
