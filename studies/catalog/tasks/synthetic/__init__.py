"""A synthetic task is causal, scored at some positions alone, and drawn from its settings and a seed alone.

`base` has what all share. `state_tracking` has parity, modular arithmetic and word problems of groups,
`recall` what must be found again, `chomsky` the problems of the Chomsky hierarchy. Each registers its
tasks; `engine/tasks/synthetic` draws examples.
"""

from . import chomsky, recall, state_tracking  # each registers its tasks
from .base import RULES, LengthTask, Rule, SyntheticTask
from .chomsky import ChomskySettings
from .recall import InductionSettings, MqarSettings, NeedleSettings
from .state_tracking import GROUP_ORDERS, ModularArithmeticSettings, ParitySettings, WordProblemSettings

__all__ = [
    "GROUP_ORDERS",
    "RULES",
    "ChomskySettings",
    "InductionSettings",
    "LengthTask",
    "ModularArithmeticSettings",
    "MqarSettings",
    "NeedleSettings",
    "ParitySettings",
    "Rule",
    "SyntheticTask",
    "WordProblemSettings",
    "chomsky",
    "recall",
    "state_tracking",
]
