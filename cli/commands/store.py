"""`activemem store`: check and repair of a store's files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ... import cli, storage
from ..json_output import print_json
from ..options import JsonOption, ResultsOption
from ..output import EXIT_FAILED, print_stdout

if TYPE_CHECKING:
    from ...storage.store_upkeep import Finding

app = typer.Typer(help="Check, repair and clean up the store of results.", no_args_is_help=True)

DryOption = Annotated[bool, typer.Option("--dry-run", help="Only list what would be done.")]


@app.command()
def check(*, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Read every file of a store, and report what is wrong; nothing is changed.

    Exits with 1 if a file is damaged or unreadable, or if the row or the metrics of a trial are missing.
    Trials with several done rows of different values, as in merged stores, files of other programs,
    checkpoints of unfinished trials and leftovers are reported, but do not change the exit status.
    """
    _report_faults(_open_store(results), results, None, as_json=as_json)


@app.command()
def repair(*, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Move damaged files to the store's quarantine.

    Trials whose rows or weights are lost, or whose metrics were damaged, are trained again by `study run`.
    Exits with 1 if something cannot be repaired.
    """
    store = _open_store(results)
    _report_faults(store, results, store.upkeep.repair(), as_json=as_json)


@app.command()
def clean(*, dry_run: DryOption = False, results: ResultsOption = None, as_json: JsonOption = False) -> None:
    """Remove leftovers: files left unfinished by killed processes, and checkpoints of ended trials.

    Rows, weights and quarantined files are kept.
    """
    from ..views.store_upkeep import format_clean

    store = _open_store(results)
    found = store.upkeep.clean(dry=dry_run)
    if as_json:
        print_json(removed=not dry_run, leftovers=found)
    else:
        print_stdout("\n".join(format_clean(found, dry=dry_run)))


def _open_store(results: str | None) -> storage.Store:
    """Return the store of --results, else the configured one. Raise StoreError for a missing folder."""
    store = cli.load_settings({"results": results}).store
    if results is not None and not store.root.is_dir():
        raise storage.StoreError(f"{store.root}: expected the folder of a store, got none; correct --results")
    return store


def _report_faults(
    store: storage.Store, results: str | None, moved: tuple[Finding, ...] | None, *, as_json: bool
) -> None:
    """Check a store, and print the files that a repair has `moved`, then all faults.

    Raise StoreError if --results names a folder or an address that has no file of a store.
    """
    from ..views.store_upkeep import format_check

    found = replace(store.upkeep.check(), moved=moved or ())
    if results is not None and found.is_empty:
        raise storage.StoreError(f"{store.place}: expected a store, got a place without its files")
    if as_json:
        print_json(found)
    else:
        print_stdout("\n".join(format_check(store, found, repaired=moved is not None)))
    if found.has_faults:
        raise typer.Exit(EXIT_FAILED)
