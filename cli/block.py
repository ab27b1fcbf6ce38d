"""`activemem block`: the blocks that recipes are made of, this package's and those of others."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import AsJson, Causal, Length, Width
from .streams import give, give_json, say, wrong_input

app = typer.Typer(help="List the blocks of the recipe language, and show one.", no_args_is_help=True)

BlockText = Annotated[
    str, typer.Argument(metavar="NAME", help='A block by its name, or with arguments, as "conv(k=20)".')
]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List every block: its signature, its role, what it is, and the package that it comes from.

    Blocks of other packages that cannot be used are told on standard error.
    """
    from ..grammar import lookup, names
    from ..grammar.vocabulary import problems
    from . import lexicon

    specs = [spec for name in names() if (spec := lookup(name)) is not None]
    if as_json:
        give_json(lexicon.list_data(specs, problems()))
    else:
        give(lexicon.lines(specs))
    for problem in problems():
        say(str(problem))


@app.command()
def show(
    *,
    name: BlockText,
    d_model: Width = 128,
    length: Length = 40,
    causal: Causal = False,
    as_json: AsJson = False,
) -> None:
    """Show a block: its parameters, equation and source, and what it costs and sees in a model.

    Parameters that must be given and are not have a small value there.
    """
    from ..grammar import Context, RecipeError
    from . import lexicon

    with wrong_input(RecipeError):
        found = lexicon.find(name)
    place = Context(width=d_model, length=length, causal=causal)
    if as_json:
        give_json(lexicon.data(found, place))
    else:
        give(lexicon.picture(found, place))
