"""`activemem block`: the blocks of recipes, built-in ones and those of plug-ins."""

from __future__ import annotations

from typing import Annotated

import typer

from ...options import CausalOption, JsonOption, LengthOption, WidthOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the blocks of the recipe language, and show one.", no_args_is_help=True)

BlockText = Annotated[
    str, typer.Argument(metavar="NAME", help='A block by its name, or with arguments, as "conv(k=20)".')
]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List every block: its signature, its role, what it is, and the package that it comes from.

    Blocks of other packages that cannot be used are listed on standard error.
    """
    from ....grammar import lookup, registered_names
    from ....plugins import broken_plugins
    from ...views import blocks

    told = broken_plugins()
    specs = [spec for name in registered_names() if (spec := lookup(name)) is not None]
    if as_json:
        print_json(blocks.blocks_to_dict(specs, broken_plugins()))
    else:
        print_stdout(blocks.format_blocks(specs))
    tell_broken(told)


@app.command()
def show(
    *,
    name: BlockText,
    d_model: WidthOption = 128,
    length: LengthOption = 40,
    causal: CausalOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a block: its parameters, equation and source, and what it costs and sees in a model.

    Required parameters that are not given get a small value.
    """
    from ....grammar import CostContext, ModelConfig
    from ...views import blocks

    found = blocks.parse_block(name)
    place = CostContext(config=ModelConfig(d_model=d_model, causal=causal, dropout=0.0), length=length)
    if as_json:
        print_json(blocks.block_to_dict(found, place))
    else:
        print_stdout(blocks.format_block(found, place))
