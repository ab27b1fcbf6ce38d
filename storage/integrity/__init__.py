"""What is read is what was written, or is known not to be.

`checksum` covers Parquet files, `seal` checkpoints, `model_checksum` trained models; `recovery` finds the row
groups of a damaged file that are intact. `record` writes and reads JSON by a schema and a checksum.
`regular_file` opens nothing but files that can be read, and
`quarantine` moves damaged ones away.
"""
