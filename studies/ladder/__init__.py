"""A ladder is sizes in step, each trained for as many tokens as its parameters ask for.

`ladder` reads [ladder] and makes factors of its sizes; `rungs` gives a trial of one its steps and its rate.
"""

from .ladder import Ladder, LadderSettings, expand_ladder
from .rungs import on_rung, step_tokens

__all__ = ["Ladder", "LadderSettings", "expand_ladder", "on_rung", "step_tokens"]
