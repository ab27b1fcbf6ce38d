"""`activemem data`: what models are trained on, and what of it is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import AsJson, Data
from .streams import FAILED, INTERRUPTED, give, give_json, say, wrong_input

app = typer.Typer(help="List, fetch and check texts, pairs and treebanks.", no_args_is_help=True)


@app.command("list")
def list_(data: Data = None, as_json: AsJson = False) -> None:
    """List all that can be trained on: its size, where it stands on this machine, licence and source."""
    from ..engine.corpora import standing
    from ..studies.library import dataset_names, require_dataset
    from . import shelf
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, OSError):
        folder = settings({"data": data}).data
        found = [standing(require_dataset(name), folder) for name in dataset_names()]
    if as_json:
        give_json([shelf.data(each) for each in found])
    else:
        give(shelf.lines(found))


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names, as `data list` has them.")],
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
    that is named as the corpus, may have them plain, packed as .xz or .gz, or as they were published. Of what
    has no address, such as a licensed treebank, this says where to get it and where its files belong.
    """
    from ..engine.corpora import DataError, fetch, take
    from ..studies.datasets import CorpusError
    from ..studies.library import require_dataset
    from .downloads import shown
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, CorpusError, DataError, OSError):
        folder = settings({"data": data}).data
        for dataset in [require_dataset(name) for name in names]:
            if dataset.installed:
                say(f"{dataset.name} is part of activemem")
                continue
            try:
                with shown() as progress:
                    files = (
                        take(dataset, Path(source), folder) if source else fetch(dataset, folder, progress)
                    )
            except KeyboardInterrupt:
                say("stopped; the same command goes on where it was")
                raise typer.Exit(INTERRUPTED) from None
            for path in files:
                say(f"{dataset.name}: {path}")


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Names; else all that are here.")
    ] = None,
    *,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Read corpora and compare them with the checksums of those that were published.

    Ends with status 1 if one is not all there, or not the one that was published.
    """
    from ..engine.corpora import present, standing
    from ..studies.datasets import CorpusError
    from ..studies.library import dataset_names, require_dataset
    from . import shelf
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, CorpusError, OSError):
        folder = settings({"data": data}).data
        datasets = [require_dataset(name) for name in names or dataset_names()]
        if not names:
            datasets = present(datasets, folder)
    found = []
    for dataset in datasets:
        found.append(standing(dataset, folder, checked=True))
        if not as_json:
            give(shelf.verdict(found[-1]))
    if as_json:
        give_json([shelf.data(each) | {"faults": list(each.faults)} for each in found])
    if not all(each.complete and not each.faults for each in found):
        raise typer.Exit(FAILED)
