"""A synthetic task is causal, scored at some positions alone, and drawn from its settings and a seed alone.

`base` has what all share. `state_tracking` has parity, modular arithmetic and word problems of groups,
`recall` what must be found again, `chomsky` the problems of the Chomsky hierarchy. `listops`
and `mad` those of these names. Each registers its tasks; `engine/tasks/synthetic` draws examples.
"""

from . import chomsky, listops, mad, recall, state_tracking  # each registers its tasks
from .base import RULES, LengthTask, Rule, SyntheticTask
from .chomsky import ChomskySettings
from .listops import ListopsSettings
from .mad import MadSettings
from .recall import InductionSettings, MqarSettings, NeedleSettings
from .state_tracking import GROUP_ORDERS, ModularArithmeticSettings, ParitySettings, WordProblemSettings

__all__ = [
    "GROUP_ORDERS",
    "RULES",
    "ChomskySettings",
    "InductionSettings",
    "LengthTask",
    "ListopsSettings",
    "MadSettings",
    "ModularArithmeticSettings",
    "MqarSettings",
    "NeedleSettings",
    "ParitySettings",
    "Rule",
    "SyntheticTask",
    "WordProblemSettings",
    "chomsky",
    "listops",
    "mad",
    "recall",
    "state_tracking",
]
