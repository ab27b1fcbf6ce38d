"""`activemem model`: the trained models that studies have kept, and their use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import (
    EXIT_WRONG_INPUT,
    print_json,
    print_json_line,
    print_piece,
    print_stderr,
    print_stdout,
)
from ..schemas import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

    from ...engine.inference.trained_model import TrainedModel

app = typer.Typer(help="Use the trained models that studies have kept.", no_args_is_help=True)

ModelName = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A model's file, a folder with model.safetensors, or a trial's id."),
]


@app.command("list")
def list_(
    study: LastRunStudy = None,
    *,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Show this metric, the best first.")
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the models that a study has kept: trial, levels, and what a metric says of each.

    Which metric is that of the study's first table, unless you name one.
    """
    from ...reporting.kept_models import best_first, kept_models
    from ...studies.last_run import load_last_run
    from ..machine_settings import load_settings
    from ..views import models

    store = load_settings({"results": results}).store
    last_run = load_last_run(study, store)
    kept = kept_models(last_run, store)
    if not kept:
        print_stderr(f"{last_run.name}: no model was kept; a study keeps them with keep_weights = true")
        raise typer.Exit(EXIT_WRONG_INPUT)
    if metric is not None:
        kept = best_first(kept, metric)
    if as_json:
        print_json({"models": [models.kept_model_to_dict(model) for model in kept]})
    else:
        shown = metric or next((name for table in last_run.tables for name in table.value), None)
        print_stdout("\n".join(models.format_kept_models(kept, shown)))


@app.command()
def show(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Show what a model is: recipe, task, settings, what it reached, and what it can be used for."""
    from ..views import models

    trained = _load(model, results)
    if as_json:
        print_json(models.model_to_dict(trained))
    else:
        print_stdout("\n".join(models.format_model(trained)))


@app.command()
def predict(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Answer each line of standard input with a line.

    A model of sentences reads and writes sentences; of other tasks it is the numbers of symbols with spaces
    between them, and of sequences of real numbers a JSON list of positions, each a list of numbers.
    """
    for answer in _load(model, results).predict(sys.stdin):
        if as_json:
            print_json_line({"schema": SCHEMA, "output": answer})
        else:
            print_stdout(answer)


@app.command()
def generate(
    *,
    model: ModelName,
    beginning: Annotated[str, typer.Argument(metavar="[TEXT]", help="The text to go on with.")] = "",
    length: Annotated[
        int, typer.Option("--length", metavar="N", help="Symbols to add; fewer if a line ends.")
    ] = 200,
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="0 takes the likeliest symbol.")
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", help="Draw from the K likeliest symbols.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option("--top-p", metavar="P", help="Draw from the fewest that have P together.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option("--beam", metavar="N", help="Look for the likeliest text with N hypotheses.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The seed of what is drawn.")] = 0,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a text, symbol by symbol as they come. Of language models alone."""
    pieces = _load(model, results).generate(
        beginning,
        max_symbols=length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        beam=beam,
        seed=seed,
    )
    if as_json:
        print_json({"beginning": beginning, "text": "".join(pieces)})
        return
    print_piece(beginning)
    for piece in pieces:
        print_piece(piece)
    print_piece("\n")


@app.command()
def score(
    *,
    model: ModelName,
    text: Annotated[str, typer.Argument(metavar="FILE", help="A text in UTF-8, or - for standard input.")],
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a text: how likely each of its symbols is. Of language models alone."""
    from pathlib import Path

    from ..views import models

    content = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
    found = _load(model, results).score(content)
    if as_json:
        print_json(models.score_to_dict(found))
    else:
        print_stdout("\n".join(models.format_score(found)))


@app.command()
def export(
    *,
    model: ModelName,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="FILE.pt2, FILE.onnx, or a new folder for the Hub.")
    ],
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model as a program that runs without activemem, and compare the two on the spot.

    .pt2 is a program of torch.export and .onnx one of ONNX, for batches and lengths of any size; a folder
    gets config.json and model.safetensors.
    """
    from pathlib import Path

    from ...engine.inference.export import export_model
    from ...engine.inference.trained_model import load_model

    source = _find(model, results)
    done = export_model(load_model(source), source, Path(path))
    if as_json:
        print_json({"path": str(done.path), "difference": done.difference})
        return
    differs = "" if done.difference is None else f", whose outputs differ by at most {done.difference:.1e}"
    print_stdout(f"{done.path}{differs}")


def _load(model: str, results: str | None) -> TrainedModel:
    from ...engine.inference.trained_model import load_model

    return load_model(_find(model, results))


def _find(model: str, results: str | None) -> Path:
    """The file of a model: given by its path, its folder, or its trial."""
    from pathlib import Path

    from ...engine.inference.trained_model import HUB_WEIGHTS
    from ...reporting.kept_models import model_file_of_trial
    from ..machine_settings import load_settings

    path = Path(model)
    if path.is_dir():
        return path / HUB_WEIGHTS
    if path.is_file() or path.suffix:
        return path
    return model_file_of_trial(load_settings({"results": results}).store, model)
