"""What `activemem study` tells of a search: its best points."""

from __future__ import annotations

from ..output import output_width, print_json, print_stdout


def show_best(
    study: str, overrides: list[str] | None, count: int, results: str | None, *, as_json: bool
) -> None:
    """Print the best points of a search, as its table of points has them."""
    from ...reporting.results import open_study
    from ...reporting.tables.render import rich
    from ...reporting.tables.tidy import iter_records
    from ..machine_settings import load_settings

    store = load_settings({"results": results}).store
    table = open_study(study, store, overrides or ()).best_table(count).table
    if as_json:
        print_json(list(iter_records(table)))
    else:
        print_stdout(rich.render(table, width=output_width()), styled=True)
