"""`activemem model`: the trained models that studies have kept, and their use."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ...studies.text.units import plural
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import (
    EXIT_WRONG_INPUT,
    print_json,
    print_json_line,
    print_piece,
    print_stderr,
    print_stdout,
    print_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...engine.inference.trained_model import TrainedModel

_MAX_SHOWN = 10
"""The number of unknown symbols that a message lists."""

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
    """List the models that a study has kept: trial, levels, and a metric of each.

    The metric is by default the one in the study's first table.
    """
    from ...reporting.kept_models import best_first, kept_models
    from ..machine_settings import open_results
    from ..missing_results import no_models_note
    from ..views import models

    opened = open_results(study, results)
    last_run, store = opened.study, opened.store
    kept = kept_models(last_run, store)
    if not kept:
        print_stderr(no_models_note(last_run, store))
        raise typer.Exit(EXIT_WRONG_INPUT)
    if metric is not None:
        kept = best_first(kept, metric)
    if as_json:
        from ..pages import ModelEntry, ModelListPage

        print_json(ModelListPage(models=[ModelEntry.model_validate(each) for each in kept]))
    else:
        shown = metric or next((name for table in last_run.tables for _, name in table.named_metrics()), None)
        print_stdout("\n".join(models.format_kept_models(kept, shown)))


@app.command()
def show(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Show what a model is: recipe, task, settings, what it reached, and what it can be used for."""
    from ..views import models

    trained = _load(model, results)
    if as_json:
        from ..pages import ModelShowPage

        print_json(ModelShowPage.of(trained))
    else:
        print_stdout("\n".join(models.format_model(trained)))


@app.command()
def predict(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Answer each line of standard input with a line; an empty line gets an empty answer.

    Models of sentences read and write sentences. Models of drawn tasks read and write the numbers of symbols,
    with spaces between them. Models of sequences of numbers read a JSON list of positions, each a list of
    numbers. Labels with line breaks are quoted as JSON, and labels of tokens with spaces form a JSON list.
    """
    unknown, unread = dict[str, None](), 0
    for answer in _load(model, results).predictions(_lines_of_stdin()):
        if as_json:
            from ..pages import ModelPredictLine

            print_json_line(ModelPredictLine.model_validate(answer))
        else:
            print_stdout(answer.text)
        unknown.update(dict.fromkeys(answer.unknown))
        unread += answer.unread
    if unknown:
        more = ", …" if len(unknown) > _MAX_SHOWN else ""
        print_stderr(
            f"{plural(len(unknown), 'symbol')} not in the model's vocabulary: "
            f"{', '.join(list(unknown)[:_MAX_SHOWN])}{more}"
        )
    if unread:
        print_stderr(f"{plural(unread, 'token')} beyond the longest sequence not read, shown as –")


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
    """Continue a text, symbol by symbol. Only language models can."""
    import os

    beginning = _decode(os.fsencode(beginning), "TEXT")
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
        from ..pages import ModelGeneratePage

        print_json(ModelGeneratePage(beginning=beginning, text="".join(pieces)))
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

    data = sys.stdin.buffer.read() if text == "-" else Path(text).read_bytes()
    found = _load(model, results).score(_decode(data, "standard input" if text == "-" else text))
    if as_json:
        from ..pages import ModelScorePage

        print_json(ModelScorePage.model_validate(found))
    else:
        print_stdout("\n".join(models.format_score(found)))


@app.command()
def export(
    *,
    model: ModelName,
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="FILE.pt2, FILE.onnx, or a new folder for the Hub.")
    ],
    lengths: Annotated[
        bool, typer.Option("--lengths", help="Write a program whose second input is the sequences' lengths.")
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model as a program that runs without activemem, and compare the two on the spot.

    .pt2 is a program of torch.export and .onnx one of ONNX, for batches and lengths of any size. With
    --lengths the program distinguishes padding from valid positions. A folder gets config.json and
    model.safetensors.
    """
    from pathlib import Path

    from ...engine.inference.export import export_model
    from ...engine.inference.trained_model import load_model

    source = _find(model, results)
    trained = load_model(source)
    if Path(path).suffix:
        print_waiting(f"exporting {trained.recipe} and comparing outputs at many lengths")
    done = export_model(trained, source, Path(path), lengths=lengths)
    if as_json:
        from ..pages import ModelExportPage

        print_json(ModelExportPage.model_validate(done))
        return
    differs = "" if done.difference is None else f", whose outputs differ by at most {done.difference:.1e}"
    print_stdout(f"{done.path}{differs}")


def _lines_of_stdin() -> Iterator[str]:
    """Yield the lines of standard input as they come; InputError for one that is not UTF-8."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        yield _decode(line, f"standard input, line {number:,}")


def _decode(data: bytes, where: str) -> str:
    """Return text in UTF-8, with line breaks as Python has them; InputError with the first wrong byte."""
    from ...engine.inference.predictions import InputError

    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f", line {line:,}" if line > 1 or b"\n" in data[:-1] else ""
        raise InputError(
            f"{where}{place}, byte {error.start + 1:,}: expected UTF-8, got 0x{data[error.start]:02x}"
        ) from error


def _load(model: str, results: str | None) -> TrainedModel:
    path = _find(model, results)
    if path.is_file():
        print_waiting(f"loading {path}")  # torch alone takes seconds
    from ...engine.inference.trained_model import load_model

    return load_model(path)


def _find(model: str, results: str | None) -> Path:
    """Return the file of a model, given by its path, its folder, or its trial."""
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
