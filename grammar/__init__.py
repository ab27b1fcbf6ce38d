"""What can be said: a recipe is text, checked to its last token before anything is built."""

from . import attention, channel, convolutions
from .analysis import Analysis, Norm, Part, analyse
from .faults import Fault, RecipeError
from .recipe import Recipe, parse, parse_dimension
from .text import render
from .vocabulary import (
    ALL,
    Context,
    Cost,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    lookup,
    names,
    register,
)

__all__ = [
    "ALL",
    "Analysis",
    "Context",
    "Cost",
    "Fault",
    "Norm",
    "Parameter",
    "Part",
    "Reach",
    "Recipe",
    "RecipeError",
    "Role",
    "Settings",
    "Spec",
    "analyse",
    "attention",
    "channel",
    "convolutions",
    "lookup",
    "names",
    "parse",
    "parse_dimension",
    "register",
    "render",
]
