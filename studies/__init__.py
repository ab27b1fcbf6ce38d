"""Studies: from a TOML file to trials, before anything runs.

`study` is a loaded study. `study_files` finds its file, `last_run`
finds recorded studies, and `new_study` writes a first file. `text` is TOML with positions, `schema` the
tables and keys of what is trained, `presentation` those of tables and figures, `own_data` the user's files,
`catalog` everything that a file can name. `designs` combines levels, `ladder` has sizes in step, `fidelity`
the rungs of a search, `resolve` fills holes and makes trials, `claims` reads statements about results,
`planning` compares a study with a store, `rounds` adds what results decide, `searches` reads the points of
a search. The shipped studies are the TOML files here; `results` holds their committed trials.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
