"""What is read is what was written, or is known not to be.

`checksum` covers Parquet files, `seal` all other files; `regular_file` opens nothing but files that can be
read, and `quarantine` moves damaged ones away.
"""
