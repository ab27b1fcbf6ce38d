"""The store: a row is written once, durably, before its trial is reported as ended.

`store` has the rows, `trial_files` the other files of trials, `study_records` the studies that have run, and
`store_upkeep` checks, merges and removes. `leases` decide who trains a trial.

`place` names all files and says where they are: in a folder, or by `bucket_place` and `bucket` in a bucket.
`files` makes local writes survive crashes, `rows` defines rows, and `checksums` covers all files. `read` and
`latest_attempts` read rows, and move damaged files away.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
