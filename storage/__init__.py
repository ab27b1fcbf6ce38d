"""The store: a row is written once, durably, before its trial is reported as ended.

`store` has the rows, `trial_files` what trials keep beside them, `study_records` the studies that have run,
and `store_upkeep` checks, merges and removes. `leases` decide who trains a trial.

`place` is where files are, a folder or a bucket by `bucket_place` and `bucket`, and names all files, and
`files` makes local writes survive crashes. `rows` says what a row is, and `checksums` covers all files.
`read` and `latest_attempts` read rows, and move damaged files away.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
