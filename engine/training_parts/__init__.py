"""A part of a training that a study asks for changes no bit where it is not, and keeps all of its own state.

`early_stopping` says when a metric gets no better, `best_epoch` holds the weights of the best epoch,
`gradient_measures` says what gradients are like;
`loss_terms` are what plug-ins add to the loss, `callbacks` what they do beside the training;
`activation_checkpointing` has models compute again what they would keep for the backward pass.
"""

from .best_epoch import BestEpoch
from .callbacks import Callbacks
from .early_stopping import Patience
from .gradient_measures import GradientMeasures
from .loss_terms import LossTerms

__all__ = ["BestEpoch", "Callbacks", "GradientMeasures", "LossTerms", "Patience"]
