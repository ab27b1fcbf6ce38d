"""What a trial computes depends on its settings alone, however it is scheduled.

`run` takes trials to this process or to Ray, `trial` takes one from its checkpoint to its row, `packs` have
several train together, `replicas` one on several devices, `graphs` record its steps, `objectives` has the
data, loss and measures of each kind of task, `optimisers` move the weights, and `training_parts` are what a
study may ask for beside. `tasks` generate problems; `corpora` are files on this machine, and `data` makes
batches of them. `decoding` searches for outputs, `measures` says what they are worth, `probes` look into
trained models, and `inference` uses them. `core` is what all of these share.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
