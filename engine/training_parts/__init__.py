"""Parts of a training that a study may ask for.

A part that is not asked for changes no bit of a training; each keeps its own state.

`stopping` decides when a training ends and which epoch is kept. `work` counts time, operations and tokens.
`gradient_measures` measures gradients. `loss_terms` and `callbacks` run those of plug-ins.
`activation_checkpointing` recomputes activations in the backward pass.
"""

from .callbacks import Callbacks
from .gradient_measures import GradientMeasures
from .loss_terms import LossTerms
from .stopping import Stopping
from .work import Work

__all__ = ["Callbacks", "GradientMeasures", "LossTerms", "Stopping", "Work"]
