"""Checks that a file is what was written.

`checksums` cover checkpoints and trained models, `record` small JSON files; Parquet files have
their own in `parquet_file`. `regular_file` opens nothing but files that can be read.
"""
