"""`activemem data`: commands that list, download and check corpora."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ... import cli, studies
from ..json_output import print_json
from ..options import DataOption, JsonOption
from ..output import EXIT_FAILED, EXIT_INTERRUPTED, print_stderr, print_stdout

if TYPE_CHECKING:
    from ...engine.corpora.availability import Availability

app = typer.Typer(
    help="List, download and check corpora: texts, sentence pairs and treebanks.", no_args_is_help=True
)


@app.command("list")
def list_(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List all corpora with their size, folder on this machine, licence and source."""
    from ...engine.corpora.availability import check_availability
    from ..views.datasets import format_datasets

    folder = cli.load_settings({"data": data}).data
    found = [check_availability(studies.require_dataset(name), folder) for name in studies.dataset_names()]
    if as_json:
        print_json(datasets=found)
    else:
        print_stdout(format_datasets(found))


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Names from `data list`.")],
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FOLDER", help="Copy the files from this folder instead of downloading them."
        ),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Download corpora; an interrupted download resumes.

    Files are compared with the published checksums. With --from, the command copies the files from FOLDER, or
    from the subfolder with the corpus's name. The files may be plain, compressed as .xz or .gz, or in the
    form in which they were published. Some corpora have no address for a download, such as licensed
    treebanks. For these, the command explains where to get the files and where to put them.
    """
    from ...engine.corpora.download import copy_from, fetch
    from ..live.display import download_progress

    folder = cli.load_settings({"data": data}).data
    fetched: dict[str, Sequence[Path]] = {}
    for dataset in [studies.require_dataset(name) for name in names]:
        if dataset.installed:
            print_stderr(f"{dataset.name} is part of activemem")
            fetched[dataset.name] = ()
            continue
        try:
            with download_progress() as progress:
                files = (
                    copy_from(dataset, Path(source), folder) if source else fetch(dataset, folder, progress)
                )
        except KeyboardInterrupt:
            print_stderr("stopped; run the same command again to continue")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        for path in files:
            print_stderr(f"{dataset.name}: {path}")
        fetched[dataset.name] = files
    if as_json:
        print_json(files=fetched)


@app.command()
def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", help="Names of corpora (default: all downloaded ones)."),
    ] = None,
    *,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verify corpora by the checksums of the published files.

    Exits with 1 if files are missing or differ from the published ones.
    """
    from ...engine.corpora.availability import available_datasets, check_availability
    from ..views import datasets as views

    folder = cli.load_settings({"data": data}).data
    datasets = [studies.require_dataset(name) for name in names or studies.dataset_names()]
    if not names:
        datasets = available_datasets(datasets, folder)
    found: list[Availability] = []
    for dataset in datasets:
        found.append(check_availability(dataset, folder, verify=True))
        if not as_json:
            print_stdout(views.format_check(found[-1]))
    if as_json:
        print_json(datasets=found)
    if not all(each.here and not each.faults for each in found):
        raise typer.Exit(EXIT_FAILED)
