"""An optimiser is made of the settings in [train] and moves every weight that is not frozen once a step.

`build` makes them, `lion`, `muon` and `sgd` are those that torch does not have in this form,
`parameter_groups` has weights with rates of their own, `changed_settings` has settings change amid a
training, `state_size` the bytes that are kept of weights, `clipped_steps` keep steps small,
`maximal_updates` rates by width; `weight_average` is what models may be evaluated with, and `weights` are
those of a training with all that moves them.
"""

from .build import build_optimizer
from .weight_average import WeightAverage

__all__ = ["WeightAverage", "build_optimizer"]
