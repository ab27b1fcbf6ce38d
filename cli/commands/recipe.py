"""`activemem recipe`: commands that need only the text of a recipe."""

from __future__ import annotations

from random import Random
from typing import Annotated, Literal

import typer

from ... import cli, grammar, reporting
from ..help_panels import EVERY_DAY
from ..json_output import print_json, print_page
from ..options import (
    BatchOption,
    CausalOption,
    JsonOption,
    LengthOption,
    RecipeText,
    ResultsOption,
    VocabOption,
    WidthOption,
    number_option,
)
from ..output import bold, print_stderr, print_stdout

app = typer.Typer(help="Check and analyse recipes without building a model.", no_args_is_help=True)


@app.command()
def check(recipe: RecipeText, as_json: JsonOption = False) -> None:
    """Print a recipe's canonical text, its id, and how many architectures it describes.

    For a wrong recipe, print all of its faults.
    """
    try:
        found = grammar.parse(recipe)
    except grammar.RecipeError as error:
        if as_json:
            print_page("recipe check", text=error.text, holes=(), dimensions=(), faults=error.faults)
        raise
    if as_json:
        dimensions, space = [name for name, _ in found.dimensions], grammar.Space(found).count
        keys = {"text": found.text, "id": found.id, "holes": found.holes}
        print_page("recipe check", **keys, dimensions=dimensions, space=space, faults=())
        return
    print_stdout(f"{found.text}   id {found.id}")
    if found.dimensions:
        print_stdout(str(grammar.Space(found).count))


@app.command()
def render(recipe: RecipeText, as_json: JsonOption = False) -> None:
    """Print a recipe's canonical text, which is its standard spelling.

    Rendering the canonical text gives the same text again.
    """
    found = grammar.parse(recipe)
    if as_json:
        print_page("recipe render", found)
    else:
        print_stdout(found.text)


@app.command(rich_help_panel=EVERY_DAY)
def show(
    *,
    recipe: RecipeText,
    d_model: WidthOption = 128,
    length: LengthOption = 40,
    vocab: VocabOption = 20,
    causal: CausalOption = False,
    batch: BatchOption = 32,
    recipe_format: Annotated[
        Literal["text", "svg"], typer.Option("--format", help="Show the parts as text or as an SVG picture.")
    ] = "text",
    as_json: JsonOption = False,
) -> None:
    """Show the cost of each part of a recipe, and its reach: how far back and ahead it sees.

    FLOPs are those of a forward pass. Memory is the size of the activations that a batch stores for its
    backward pass, in 32-bit numbers. The last two columns show what a model keeps in memory while it
    generates, in 16-bit numbers. `cache` is the memory for each token, such as the keys and values of
    attention. `fixed state` is memory of a fixed size, such as the last inputs of a convolution or the hidden
    vector of a recurrent layer.
    """
    if as_json and recipe_format != "text":
        raise typer.BadParameter(f"expected --json or --format {recipe_format}, got both")
    config = grammar.configure(d_model=d_model, vocab=vocab, causal=causal)
    shown = reporting.show_recipe(recipe, config, length=length, batch=batch)
    if as_json:
        print_json(shown.costs)
    else:
        heading, line_end, lines = shown.render(recipe_format).partition("\n")
        heading = bold(heading) if recipe_format == "text" else heading
        print_stdout(f"{heading}{line_end}{lines}", styled=recipe_format == "text")


@app.command()
def compare(
    *,
    recipes: Annotated[
        list[str],
        typer.Argument(metavar="RECIPE…", help="Two or more recipes; all are compared with the first."),
    ],
    d_model: WidthOption = 128,
    length: LengthOption = 40,
    vocab: VocabOption = 20,
    causal: CausalOption = False,
    batch: BatchOption = 32,
    as_json: JsonOption = False,
) -> None:
    """Compare the costs, the memory and the reach of several recipes with those of the first.

    The reach is how many tokens to the left and right an output depends on. The quantities are the same as
    in `recipe show`.
    """
    config = grammar.configure(d_model=d_model, vocab=vocab, causal=causal)
    compared = reporting.compare_recipes(recipes, config, length=length, batch=batch)
    if as_json:
        print_page("recipe compare", recipes=compared.costs)
    else:
        print_stdout(str(compared))


@app.command()
def nearest(
    recipe: RecipeText,
    *,
    count: Annotated[int, number_option("-n", "--count", help="The largest number of recipes to show.")] = 5,
    task: Annotated[
        str | None, typer.Option("--task", metavar="NAME", help="Show only results on this task.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", metavar="NAME", help="The metric to show (default: the main metric of each task)."
        ),
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the stored recipes that are most similar to a given one, with their results.

    The distance between two recipes is the cost of the edits that turn one into the other. To change a block
    costs 1, an operator 0.5, and a number less than 0.5. Each result is the mean over the seeds of one
    cell, with its spread.
    """
    store = cli.load_settings({"results": results}).store
    found = reporting.nearest_recipes(recipe, store, count=count, task=task, metric=metric)
    if as_json:
        asked = grammar.parse(recipe)
        print_page("recipe nearest", recipe=asked.text, id=asked.id, nearest=found)
    else:
        print_stdout(reporting.format_nearest(found))


@app.command()
def sample(
    *,
    recipe: RecipeText,
    count: Annotated[int, number_option("--count", help="The number of recipes to print.")] = 1,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, metavar="S", help="The random seed; the same seed gives the same recipes."
        ),
    ] = 0,
    max_parameters: Annotated[
        int | None, number_option("--max-parameters", help="Skip models with more parameters.")
    ] = None,
    max_flops: Annotated[
        int | None, number_option("--max-flops", help="Skip models with more FLOPs in a forward pass.")
    ] = None,
    d_model: WidthOption = 128,
    vocab: VocabOption = 20,
    length: LengthOption = 40,
    causal: CausalOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print distinct architectures of a recipe with choices, drawn with equal probability.

    If the recipe has ranges of real numbers, the command first draws the rest of the architecture, and then
    the numbers. Parameters and FLOPs are counted as in `recipe show`, for one sequence.
    """
    budget = None
    if max_parameters is not None or max_flops is not None:
        budget = grammar.Budget(
            max_parameters=max_parameters,
            max_flops=max_flops,
            d_model=d_model,
            vocab=vocab,
            length=length,
            causal=causal,
        )
    space = grammar.Space(grammar.parse(recipe), budget)
    remaining = space.remaining(Random(seed)) if budget else None
    members = space.sample_distinct(count, Random(seed))
    if as_json:
        keys = {"recipe": space.recipe.text, "space": space.count, "within": remaining}
        print_page("recipe sample", **keys, seed=seed, members=members)
        return
    print_stderr(str(remaining or space.count))
    for member in members:
        print_stdout(member.text)
