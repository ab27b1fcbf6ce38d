"""`activemem model`: commands that use stored models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ... import cli
from ...errors import ActivememError
from ...studies.text.units import plural
from ..json_output import print_json, print_json_line
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import EXIT_WRONG_INPUT, print_piece, print_stderr, print_stdout, waiting

if TYPE_CHECKING:
    from ... import TrainedModel

_MAX_SHOWN = 10
"""The maximum number of unknown symbols in a message."""

app = typer.Typer(help="Use the trained models that studies have saved.", no_args_is_help=True)

ModelName = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="A model's file, a folder with model.safetensors, or a trial's id."),
]


@app.command("list")
def list_(
    study: LastRunStudy = None,
    *,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="NAME", help="The metric to show and sort by, best first."),
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the stored models of a study, each with its trial, its levels and a metric.

    The metric is the first one of the study's first table, unless --metric names another.
    """
    from ...reporting.kept_models import best_first, kept_models
    from ..machine_settings import open_results
    from ..missing_results import no_models_note
    from ..views.models import format_kept_models

    opened = open_results(study, results)
    last_run, store = opened.study, opened.store
    kept = kept_models(last_run, store)
    if not kept:
        print_stderr(no_models_note(last_run, store))
        raise typer.Exit(EXIT_WRONG_INPUT)
    if metric is not None:
        kept = best_first(kept, metric)
    if as_json:
        print_json(
            models=[
                {"trial": each.trial, "levels": each.levels, "metrics": each.metrics, "path": each.path}
                for each in kept
            ]
        )
    else:
        shown = metric or next(iter(last_run.metrics), None)
        print_stdout("\n".join(format_kept_models(kept, shown)))


@app.command()
def show(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Show a model: recipe, task, settings, final metrics, and the commands that accept it."""
    from ..views.models import format_model, model_facts

    trained = _load(model, results)
    if as_json:
        print_json(**model_facts(trained))
    else:
        print_stdout("\n".join(format_model(trained)))


@app.command()
def predict(*, model: ModelName, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Predict an output line for each line of standard input; an empty line gives an empty line.

    Models of sentences read and write sentences. Models of synthetic tasks read and write symbol numbers,
    separated by spaces. Models of number sequences read a JSON list with a list of numbers for each position.
    A label with line breaks is printed as a JSON string. If a label of a token has a space, the labels of the
    line are printed as a JSON list.
    """
    unknown, unread = dict[str, None](), 0
    for answer in _load(model, results).predictions(_lines_of_stdin()):
        if as_json:
            print_json_line(answer)
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
        print_stderr(f"{plural(unread, 'token')} beyond the longest sequence: not read, shown as –")


@app.command()
def generate(
    *,
    model: ModelName,
    beginning: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="The beginning of the text; the model continues it.")
    ] = "",
    length: Annotated[
        int,
        typer.Option(
            "--length",
            metavar="N",
            help="The largest number of symbols to generate. A model that was trained on single lines stops "
            "at a line end.",
        ),
    ] = 200,
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature", metavar="T", help="The sampling temperature; 0 takes the likeliest symbol."
        ),
    ] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", help="Sample from the K likeliest symbols.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p", metavar="P", help="Sample from the smallest set of symbols with total probability P."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The random seed of the sampling.")] = 0,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a text, symbol by symbol; only for language models."""
    import os

    # an argument may have bytes that are not UTF-8, which Python hides in surrogates
    beginning = _decode(os.fsencode(beginning), "TEXT")
    pieces = _load(model, results).generate(
        beginning, max_symbols=length, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
    )
    if as_json:
        print_json(beginning=beginning, text="".join(pieces))
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
    """Print how likely a text is; only for language models."""
    from ...studies.catalog.metrics import format_number

    data = sys.stdin.buffer.read() if text == "-" else Path(text).read_bytes()
    found = _load(model, results).score(_decode(data, "standard input" if text == "-" else text))
    if as_json:
        names = ("nats", "tokens", "words", "loss", "bits_per_token", "word_perplexity", "bits_per_byte")
        print_json(**{name: getattr(found, name) for name in names})
        return
    per_byte = "unknown per byte, because the tokens do not keep all of the text"
    if found.bits_per_byte is not None:
        per_byte = f"{found.bits_per_byte:.4f} per byte"
    print_stdout(f"{found.tokens:,} tokens, {found.words:,} words")
    print_stdout(f"  loss              {found.loss:.4f} nats per token")
    print_stdout(f"  bits              {found.bits_per_token:.4f} per token, {per_byte}")
    print_stdout(f"  perplexity        {format_number(found.word_perplexity, 2)} per word")


@app.command()
def export(
    *,
    model: ModelName,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The new folder, as on the Hugging Face Hub.")
    ],
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a model to a folder, which transformers and lm_eval can load if it is a language model.

    The folder has config.json and model.safetensors, and the tokenizer of a language model. activemem must be
    installed where the folder is loaded.
    """
    written = _load(model, results).export(folder)
    if as_json:
        print_json(folder=written)
        return
    print_stdout(str(written))


def _lines_of_stdin() -> Iterator[str]:
    """Yield the lines of standard input as they arrive. Raise ActivememError for a line that is not UTF-8."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        yield _decode(line, f"standard input, line {number:,}")


def _decode(data: bytes, where: str) -> str:
    """Decode UTF-8 text with universal line breaks. Raise ActivememError with the first invalid byte."""
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f", line {line:,}" if line > 1 or b"\n" in data[:-1] else ""
        raise ActivememError(
            f"{where}{place}, byte {error.start + 1:,}: expected UTF-8, got 0x{data[error.start]:02x}"
        ) from error


def _load(model: str, results: str | None) -> TrainedModel:
    from ...reporting.kept_models import model_file_of_trial

    path = Path(model)
    if not (path.exists() or path.suffix):
        path = model_file_of_trial(cli.load_settings({"results": results}).store, model)
    with waiting(f"loading {path}"):  # torch alone takes seconds
        from ... import load_model

        return load_model(path)
