"""The store of results.

A trial's row is written durably before the trial is reported as ended. `store` has the rows, `trial_files`
the files of trials besides rows, and `study_records` the studies that have run. `store_upkeep` checks, merges
and removes files. `leases` decide who trains a trial; `processes` says which processes of this machine live.

`own_files` knows the names of a store's files and removes only these; `mark` says which folder is a store.
`place` names all files of a store, and puts them into a folder; `bucket` puts them into a bucket. `files`
makes local writes survive crashes, `rows` defines rows, and `checksums` covers all files. `read` reads rows,
finds the valid attempt of each trial, and moves damaged files away.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
