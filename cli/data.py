"""`activemem data`: the texts that language models are trained on, and what of them is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Data
from .streams import FAILED, INTERRUPTED, give, give_json, say, wrong_input

app = typer.Typer(help="List, fetch and check the texts of language models.", no_args_is_help=True)


@app.command("list")
def list_(data: Data = None, as_json: AsJson = False) -> None:
    """List every corpus: where it stands on this machine, its size, its licence, where it comes from."""
    from ..engine.corpora import standing
    from ..studies.corpora import corpus_names, require_corpus
    from . import shelf
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, OSError):
        folder = settings({"data": data}).data
    found = [standing(require_corpus(name), folder) for name in corpus_names()]
    if as_json:
        give_json([shelf.data(each) for each in found])
    else:
        give(shelf.lines(found))


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Corpora, as `data list` has them.")],
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FOLDER", help="Copy the files out of a folder, and download nothing."
        ),
    ] = None,
    data: Data = None,
) -> None:
    """Fetch corpora; a download that broke off goes on where it stopped.

    Files are compared with the checksums of those that were published. A folder of your own, or one in it
    that is named as the corpus, may have them plain, packed as .xz or .gz, or as they were published.
    """
    from ..engine.corpora import DataError, fetch, take
    from ..studies.corpora import CorpusError, require_corpus
    from .downloads import shown
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, CorpusError, DataError, OSError):
        folder = settings({"data": data}).data
        corpora = [require_corpus(name) for name in names]
        for corpus in corpora:
            if corpus.installed:
                say(f"{corpus.name} is part of activemem")
                continue
            try:
                with shown() as progress:
                    files = take(corpus, Path(source), folder) if source else fetch(corpus, folder, progress)
            except KeyboardInterrupt:
                say("stopped; the same command goes on where it was")
                raise typer.Exit(INTERRUPTED) from None
            for path in files:
                say(f"{corpus.name}: {path}")


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Corpora; else all that are here.")
    ] = None,
    *,
    data: Data = None,
) -> None:
    """Read corpora and compare them with the checksums of those that were published.

    Ends with status 1 if one is not all there, or not the one that was published.
    """
    from ..engine.corpora import standing
    from ..studies.corpora import CorpusError, corpus_names, require_corpus
    from . import shelf
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, CorpusError, OSError):
        folder = settings({"data": data}).data
        corpora = [require_corpus(name) for name in names or corpus_names()]
    wrong = False
    for corpus in corpora:
        found = standing(corpus, folder, checked=True)
        if names or found.files:
            give(shelf.verdict(found))
            wrong |= bool(found.faults) or not found.complete
    if wrong:
        raise typer.Exit(FAILED)
