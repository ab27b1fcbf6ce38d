"""`activemem recipe sample`: members of a space, drawn at random, within a budget if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Causal, Norm, NormPlace, RecipeText
from .streams import give, give_json, say, wrong_input

if TYPE_CHECKING:
    from ..grammar import Budget, Count, Remaining


def sample(
    *,
    recipe: RecipeText,
    count: Annotated[int, typer.Option("--count", min=1, metavar="N", help="How many to print.")] = 1,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="S", help="The same seed draws the same ones.")
    ] = 0,
    max_parameters: Annotated[
        int | None, typer.Option("--max-parameters", min=1, metavar="N", help="Leave larger models out.")
    ] = None,
    max_flops: Annotated[
        int | None,
        typer.Option("--max-flops", min=1, metavar="N", help="Leave out what takes more for a forward pass."),
    ] = None,
    d_model: Annotated[
        int | None, typer.Option("--d-model", min=1, metavar="N", help="Width of the model, for a budget.")
    ] = None,
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=1, metavar="N", help="Symbols, for a budget.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option("--length", min=1, metavar="N", help="Tokens of a sequence, for --max-flops."),
    ] = None,
    causal: Causal = False,
    norm: NormPlace = Norm.PRE,
    as_json: AsJson = False,
) -> None:
    """Print different architectures of a recipe with choices, drawn with the same probability each.

    Where a range of real numbers stands, forms are drawn alike and then the numbers in them. A budget counts
    as `recipe show` does; FLOPs are those of one sequence.
    """
    from random import Random

    from ..grammar import RecipeError, Space, SpaceError, parse

    budget = _budget(max_parameters, max_flops, d_model, vocab, length, causal=causal, norm=norm)
    with wrong_input(RecipeError, SpaceError):
        space = Space(parse(recipe), budget)
        remaining = space.remaining(Random(seed)) if budget else None
        members = space.draw(count, Random(seed))
    if as_json:
        page = {"recipe": space.recipe.text, **counted(space.count), **_within(remaining), "seed": seed}
        give_json({**page, "members": [{"recipe": one.text, "id": one.id} for one in members]})
        return
    say(str(remaining or space.count))
    for one in members:
        give(one.text)


def counted(count: Count) -> dict[str, Any]:
    """A count for a program: the number, or "infinite"; not exact where it is an upper bound."""
    return {"architectures": "infinite" if count.infinite else count.forms, "exact": count.exact}


def _within(remaining: Remaining | None) -> dict[str, Any]:
    """What a budget leaves, for a program; `drawn` members were looked at for an estimate, 0 if all were."""
    if remaining is None:
        return {}
    share = {"share": remaining.share, "error": remaining.error, "drawn": remaining.drawn}
    return {"within": {"architectures": remaining.within, **share}}


def _budget(
    max_parameters: int | None,
    max_flops: int | None,
    d_model: int | None,
    vocab: int | None,
    length: int | None,
    *,
    causal: bool,
    norm: Norm,
) -> Budget | None:
    """The budget that the options say; a bound without the sizes that it depends on is refused."""
    from ..grammar import Budget

    bounds = {"--max-parameters": max_parameters, "--max-flops": max_flops}
    given = [name for name, bound in bounds.items() if bound is not None]
    if not given:
        return None
    sizes = {"--d-model": d_model, "--vocab": vocab}
    if max_flops is not None:
        sizes["--length"] = length
    missing = [name for name, size in sizes.items() if size is None]
    if missing or d_model is None or vocab is None:
        raise typer.BadParameter(f"{' and '.join(given)} cannot be checked without {' and '.join(missing)}")
    return Budget(
        max_parameters=max_parameters,
        max_flops=max_flops,
        d_model=d_model,
        vocab=vocab,
        length=length or 1,
        causal=causal,
        norm=norm.value,
    )
