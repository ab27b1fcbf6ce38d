"""Studies: TOML files and the trials that they define, before anything runs.

`study` is a loaded study. `study_files` finds its file, `last_run` finds recorded studies, and `new_study`
writes a first file.

`text` reads TOML and keeps line numbers. `schema` has the tables and keys that decide what is trained;
`presentation` has the tables and keys for tables and figures. `own_data` reads the user's files, and
`catalog` has everything that a study file can name.

`designs` combines levels, `ladder` grows several sizes together, and `fidelity` has the rungs of a search.
`resolve` fills holes and makes trials, and `claims` reads statements about results. `planning` compares a
study with a store, `rounds` adds the cells that results decide, and `searches` reads the points of a search.

The shipped studies are the TOML files here; `results` holds their committed trials.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
