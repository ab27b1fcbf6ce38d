"""Training: what a trial computes depends on its settings alone, however it is scheduled.

`run` schedules trials in this process or on Ray; `trial` trains one from its checkpoint to its row; `packs`
train several together. `objectives` have the data, loss and measures of each kind of task, and `optimisers`
move the weights. `tasks` generate problems; `corpora` are files on this machine, and `data` makes batches of
them. `decoding` searches for outputs, `measures` score them, `probes` look into trained models, and
`inference` uses them. All of these share `core`.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
