"""The recipe language: a recipe is a text that describes the blocks of a model.

A recipe is checked completely before anything is built.

From text to recipe:

- `parser` reads the text into a syntax tree.
- `checker` checks the syntax tree against the `vocabulary` and makes the tree of `nodes`.
- `canonical` renders the tree as text, and `recipe` holds both.
- `errors` shows what is wrong.

Around a recipe:

- `model_config` configures the rest of the model; `norms` and `positions` are its kinds by name.
- `analysis` counts the costs and the reach of a model.
- `dimensions` lists the choices of a recipe, and `space` the recipes that they can become.
- `expressions` writes recipes as Python expressions over `block_names`.
- `signature` writes the parameters of a block as text.
- `difference` compares two recipes, measures their distance, and removes one part of a recipe at a time.

The language, in the precedence of Python's operators:

    recipe    = series END
    series    = sum { ">>" sum }                  each part one residual sub-layer
    sum       = product { "+" product }           all parts see the same input
    product   = operand { "*" operand }           one count, then one part: copies with separate weights
    operand   = number | hole | call | group
    number    = [ "-" ] NUMBER
    hole      = "{" NAME "}"
    call      = NAME [ "(" [ argument { "," argument } [ "," ] ] ")" ]
    argument  = [ NAME "=" ] series
    group     = "(" series ")"

A call is a block of the vocabulary or one of `tied(n * part)`, `each(n, part)`, `choice(option, …)`,
`integer(lo, hi, step=, log=)` and `real(lo, hi, log=)`; a bare name may be a word, as in `act=gelu`.
"""

from ..errors import Fault
from . import seq2seq
from .analysis.analyse import Analysis, ModelPart, PartKind, TrainingMemory, analyse
from .canonical import render
from .difference import tree_distance
from .errors import RecipeError
from .model_config import (
    BiasInit,
    EmbeddingInit,
    Init,
    ModelConfig,
    ModelConfigError,
    Norm,
    OutputActivation,
    ResidualInit,
)
from .recipe import Expression, Recipe, parse, parse_dimension
from .space import Budget, BudgetShare, Cardinality, Space, SpaceError
from .vocabulary.spec import (
    UNBOUNDED,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_bool,
    as_float,
    as_int,
    as_word,
    lookup,
    register,
    registered_names,
)

__all__ = [
    "UNBOUNDED",
    "Analysis",
    "BiasInit",
    "Budget",
    "BudgetShare",
    "Cardinality",
    "CostContext",
    "EmbeddingInit",
    "Expression",
    "Fault",
    "Init",
    "ModelConfig",
    "ModelConfigError",
    "ModelPart",
    "Norm",
    "OutputActivation",
    "Parameter",
    "PartKind",
    "Reach",
    "Recipe",
    "RecipeError",
    "ResidualInit",
    "Role",
    "Settings",
    "Space",
    "SpaceError",
    "Spec",
    "TrainingMemory",
    "analyse",
    "as_bool",
    "as_float",
    "as_int",
    "as_word",
    "lookup",
    "parse",
    "parse_dimension",
    "register",
    "registered_names",
    "render",
    "seq2seq",
    "tree_distance",
]
