"""Studies: TOML files and the trials that they define, before anything runs.

`study` finds and loads a study. `last_run` loads studies as the store has recorded them, `late_changes` tells
what changed after there were results, and `outlines` counts the trials of studies that are only listed.
`new_study` writes a first file.

`text` reads TOML and keeps line numbers. `schema` has the tables and keys that decide what is trained;
`presentation` has the tables and keys for tables and figures. `own_data` reads the user's files, and
`catalog` has everything that a study file can name.

`designs` combines levels, and `expansions` has features that single keys turn on, such as a ladder of sizes;
a study loads only those that it uses. `resolve` fills holes and makes trials, and `claims` reads statements
about results. `planning` compares a study with a store, and `searches` reads the points of a search. `plan`
has the plan of a study, with `plan_notes`, and `plan_text` prints it.

The shipped studies are the TOML files here; `results` holds their committed trials.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
