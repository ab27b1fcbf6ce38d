"""A run trains what is missing, then what other drivers leave, until nothing is.

`study_rounds` are those of a study, and `counter` hears what happens in them.
"""

from .counter import RunCounter
from .study_rounds import RunRounds, find_missing

__all__ = ["RunCounter", "RunRounds", "find_missing"]
