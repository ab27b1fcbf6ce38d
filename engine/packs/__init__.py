"""Packs: groups of trials that train together.

Their models and batches have equal shapes. The results equal those of separate training, except for rounding.
`packer` decides which trials fit together, and has them take their steps. `stacked_steps` computes the
gradients by `torch.vmap`, and updates the weights, in one step if all trials use Adam with equal settings.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
