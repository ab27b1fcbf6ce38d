"""Generators of task examples.

The same seed gives the same inputs and targets on every device. `algorithmic` has the algorithmic tasks and
their test sequences. `long_term` and `memory_degradation` are problems of papers. `synthetic` has causal
tasks that distinguish mixers. `generated` checks drawn examples, and `conformance` has the checks that every
task must pass.
"""

from . import synthetic as synthetic  # registers its tasks
