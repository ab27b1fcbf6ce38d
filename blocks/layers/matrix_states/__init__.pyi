from .chunked_recurrence import run_in_chunks as run_in_chunks
from .shared_key_sums import sum_with_shared_keys as sum_with_shared_keys
