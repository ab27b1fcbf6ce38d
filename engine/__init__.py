"""Training of a study's trials.

A trial's result depends only on its settings, not on how it is scheduled.

`run` schedules trials in this process or on Ray, and `trial` trains one from its checkpoint to its row.
`objectives` define the data, loss and metrics of each kind of task, and `optimisers` update the weights.
`tasks` generate problems; `corpora` reads files on this machine, and `data` turns them into batches.
`decoding` searches for outputs and scores them, `probes` look into trained models, and `inference` uses
them. All of these share `core`.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
