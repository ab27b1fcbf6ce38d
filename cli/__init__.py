"""The command line, the only folder that prints.

`app` is the program and `commands` its groups. `views` format results as lines, `pages` lists the fields of
their JSON output, and `live` shows running studies. `options` has shared options of several commands.

`output` has the two streams and exit statuses, and `json_output` writes results as JSON.
`machine_settings` reads activemem.toml and the variables of `environment`. `missing_results` has the messages
about missing results. `plugin_loading` loads plug-ins before a command runs.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
