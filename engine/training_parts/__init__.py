"""A part of a training that a study asks for changes no bit where it is not, and keeps all of its own state.

`early_stopping` says when a metric has stopped getting better, `gradient_measures` what gradients are like.
"""

from .early_stopping import Patience
from .gradient_measures import GradientMeasures

__all__ = ["GradientMeasures", "Patience"]
