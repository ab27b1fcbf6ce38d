"""Built-in tasks whose examples are drawn from a seed.

Outputs are scored at some positions only. `base` has their shared code. `state_tracking` has parity, modular
arithmetic and word problems of groups. `recall` has lookups, and `chomsky` has the problems of the Chomsky
hierarchy. `listops` and `mad` have the tasks of these names. All are causal. Each module registers its tasks;
`engine/tasks/synthetic` draws examples.
"""

from . import chomsky, listops, mad, recall, state_tracking  # each registers its tasks
from .base import RULES, LengthTask, Rule, SyntheticTask
from .chomsky import EMPTY, FIRST_SYMBOL, PROBLEMS, ChomskySettings
from .listops import ListopsSettings
from .mad import MadSettings
from .recall import InductionSettings, MqarSettings, NeedleSettings
from .state_tracking import GROUP_ORDERS, ModularArithmeticSettings, ParitySettings, WordProblemSettings
