"""`activemem data`: what models are trained on, and which of it is on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import DataOption, JsonOption
from ..output import EXIT_FAILED, EXIT_INTERRUPTED, print_json, print_stderr, print_stdout

app = typer.Typer(help="List, fetch and check texts, pairs and treebanks.", no_args_is_help=True)


@app.command("list")
def list_(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List everything to train on: its size, its place on this machine, licence and source."""
    from ...engine.corpora.availability import check_availability
    from ...studies.catalog.datasets import dataset_names, require_dataset
    from ..machine_settings import load_settings
    from ..views import datasets as views

    folder = load_settings({"data": data}).data
    found = [check_availability(require_dataset(name), folder) for name in dataset_names()]
    if as_json:
        from ..pages import DataPage

        print_json(DataPage(datasets=[views.dataset_entry(each) for each in found]))
    else:
        print_stdout(views.format_datasets(found))


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
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch corpora; an interrupted download continues where it stopped.

    The command compares files with the checksums of the published ones. With --from it takes them from your
    folder, or from a folder inside it that has the corpus's name. They may be plain, packed as .xz or .gz, or
    in their published form. If a corpus has no address, such as a licensed treebank, the command says where
    to get it and where its files belong.
    """
    from ...engine.corpora.download import copy_from, fetch
    from ...studies.catalog.datasets import require_dataset
    from ..live.display import download_progress
    from ..machine_settings import load_settings

    folder = load_settings({"data": data}).data
    fetched: dict[str, list[Path]] = {}
    for dataset in [require_dataset(name) for name in names]:
        if dataset.installed:
            print_stderr(f"{dataset.name} is part of activemem")
            fetched[dataset.name] = []
            continue
        try:
            with download_progress() as progress:
                files = (
                    copy_from(dataset, Path(source), folder) if source else fetch(dataset, folder, progress)
                )
        except KeyboardInterrupt:
            print_stderr("stopped; the same command goes on where it was")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        for path in files:
            print_stderr(f"{dataset.name}: {path}")
        fetched[dataset.name] = list(files)
    if as_json:
        from ..pages import DataFetchPage, FetchedEntry

        print_json(DataFetchPage(datasets=[FetchedEntry(name=name, files=fetched[name]) for name in fetched]))


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Names; else all that are here.")
    ] = None,
    *,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read corpora and compare them with the checksums of those that were published.

    Ends with status 1 if one is not all there, or not the one that was published.
    """
    from ...engine.corpora.availability import available_datasets, check_availability
    from ...studies.catalog.datasets import dataset_names, require_dataset
    from ..machine_settings import load_settings
    from ..views import datasets as views

    folder = load_settings({"data": data}).data
    datasets = [require_dataset(name) for name in names or dataset_names()]
    if not names:
        datasets = available_datasets(datasets, folder)
    found = []
    for dataset in datasets:
        found.append(check_availability(dataset, folder, verify=True))
        if not as_json:
            print_stdout(views.format_check(found[-1]))
    if as_json:
        from ..pages import DataPage

        print_json(DataPage(datasets=[views.dataset_entry(each) for each in found]))
    if not all(each.complete and not each.faults for each in found):
        raise typer.Exit(EXIT_FAILED)
