from .chunked_recurrence import run_in_chunks as run_in_chunks
