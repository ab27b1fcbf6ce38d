"""The command line, the only folder that prints.

`app` is the program and `commands` its groups; `serve` and `agent_guide` are commands of their own. `views`
turn results into lines, `schemas` are the forms of JSON output, `live` shows running studies. `options` are
shared by commands, `run_options` belong to `study run` and `study plan`. `plan_costs`, `plan_devices`
and `plan_packs` are parts of a plan, `plan_json` is a plan as data, `coordinates` describes a
check of widths. `output` has the two streams and exit statuses, `settings_file` finds activemem.toml,
`machine_settings` reads it, `missing_results` says which store has no results, and `plugin_loading` loads
plug-ins before a command runs.
"""
