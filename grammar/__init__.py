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

from ..lazy_exports import lazy_exports
from . import seq2seq as seq2seq  # registers its block

__getattr__, __dir__, __all__ = lazy_exports(__name__)
