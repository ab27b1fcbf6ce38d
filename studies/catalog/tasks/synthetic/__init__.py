"""A synthetic task is causal, scored at some positions alone, and drawn from its settings and a seed alone.

`base` has what all share. `state_tracking` has parity, modular arithmetic and word problems of groups,
`recall` what must be found again. Each registers its tasks; `engine/tasks/synthetic` draws examples.
"""

from . import recall, state_tracking  # each registers its tasks
from .base import RULES, LengthTask, Rule, SyntheticTask
from .recall import MqarSettings
from .state_tracking import GROUP_ORDERS, ModularArithmeticSettings, ParitySettings, WordProblemSettings

__all__ = [
    "GROUP_ORDERS",
    "RULES",
    "LengthTask",
    "ModularArithmeticSettings",
    "MqarSettings",
    "ParitySettings",
    "Rule",
    "SyntheticTask",
    "WordProblemSettings",
    "recall",
    "state_tracking",
]
