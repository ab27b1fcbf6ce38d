"""What can be said: a recipe is text, checked to its last token before anything is built.

A text goes through these files: `tokens` cuts it, `parser` reads it into `syntax`, `checks` holds that
against the `vocabulary` and makes the tree of `nodes`, `text` renders the tree canonically, `recipe` is the
outcome. `analysis` counts what a recipe costs and reaches, `space` has what those with choices can become,
`faults` shows what is wrong. The language, in the precedence of Python's operators:

    recipe    = series END
    series    = sum { ">>" sum }                  each part one residual sub-layer
    sum       = product { "+" product }           all parts see the same input
    product   = operand { "*" operand }           one count, then one part: copies with weights of their own
    operand   = number | hole | call | group
    number    = [ "-" ] NUMBER
    hole      = "{" NAME "}"
    call      = NAME [ "(" [ argument { "," argument } [ "," ] ] ")" ]
    argument  = [ NAME "=" ] series
    group     = "(" series ")"

A call is a block of the vocabulary or one of `tied(n * part)`, `choice(option, …)`,
`integer(lo, hi, step=, log=)` and `real(lo, hi, log=)`; a bare name may be a word, as in `act=gelu`.
"""

from . import all_attention, attention, channel, convolutions, neural_gpu, pools, recurrent, transducers
from .analysis import Analysis, analyse, analyse_framed, analyse_part
from .faults import Fault, RecipeError
from .frame import Embedding, Frame, FrameError, Init
from .parts import Form, Memory, Part
from .recipe import Expression, Recipe, parse, parse_dimension
from .space.budget import Budget
from .space.count import Count, Remaining
from .space.spaces import Space, SpaceError
from .text import render
from .vocabulary import (
    ALL,
    Context,
    Cost,
    Norm,
    Parameter,
    Position,
    Reach,
    Role,
    Settings,
    Spec,
    lookup,
    names,
    number,
    register,
    whole,
    word,
)

__all__ = [
    "ALL",
    "Analysis",
    "Budget",
    "Context",
    "Cost",
    "Count",
    "Embedding",
    "Expression",
    "Fault",
    "Form",
    "Frame",
    "FrameError",
    "Init",
    "Memory",
    "Norm",
    "Parameter",
    "Part",
    "Position",
    "Reach",
    "Recipe",
    "RecipeError",
    "Remaining",
    "Role",
    "Settings",
    "Space",
    "SpaceError",
    "Spec",
    "all_attention",
    "analyse",
    "analyse_framed",
    "analyse_part",
    "attention",
    "channel",
    "convolutions",
    "lookup",
    "names",
    "neural_gpu",
    "number",
    "parse",
    "parse_dimension",
    "pools",
    "recurrent",
    "register",
    "render",
    "transducers",
    "whole",
    "word",
]
