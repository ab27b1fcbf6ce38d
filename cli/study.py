"""`activemem study`: studies planned, run, looked after and listed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from .figures import WIDTH
from .options import AsJson, Only, Overrides, Results
from .streams import FAILED, INTERRUPTED, give, give_json, wrong_input

app = typer.Typer(help="Plan studies, run them, and see how far they are.", no_args_is_help=True)

StudyFile = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study file, or the name of a study that comes along.")
]
StudyName = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study by its name, as it last ran, or a study file.")
]


@app.command()
def plan(
    study: StudyFile,
    *,
    overrides: Overrides = None,
    only: Only = None,
    results: Results = None,
    as_json: AsJson = False,
) -> None:
    """Say what a study will train, what that costs, and which lengths it cannot reach.

    FLOPs are those of a training step on sequences of the task's length, 40 tokens where it grows; times come
    from trials in the store.
    """
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from ..studies.part import part
    from ..studies.plan import plan as planned
    from . import planning
    from .finding import as_written
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, OSError):
        configured = settings({"results": results})
        found = as_written(study, overrides or ())
        page = planned(found, Store(configured.results), part(found, only) if only else None)
    if as_json:
        give_json(planning.data(found, page))
    else:
        give(planning.picture(found, page, configured.values))


@app.command()
def run(
    study: StudyFile,
    *,
    overrides: Overrides = None,
    local: Annotated[bool, typer.Option("--local", help="Run in this process, without Ray.")] = False,
    only: Only = None,
    max_trials: Annotated[
        int | None, typer.Option("--max-trials", min=1, metavar="N", help="Run at most so many trials.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed trials again.")] = False,
    address: Annotated[
        str | None, typer.Option("--address", metavar="ADDR", help="The Ray cluster; else as configured.")
    ] = None,
    results: Results = None,
) -> None:
    """Train what the store lacks of a study; run it again to go on after any end.

    Ends with status 1 if a trial failed, and with 130 after Ctrl-C, which ends in order.
    """
    from ..errors import ActivememError
    from ..storage import Store
    from ..studies.faults import StudyError
    from ..studies.part import part
    from .finding import as_written
    from .reaching import check_reachable
    from .running import Order, carry_out
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StudyError, OSError):
        found = settings({"results": results, "address": address})
        wanted = as_written(study, overrides or ())
        order = Order(
            study=wanted,
            what=study,
            local=local,
            only=tuple(only or ()),
            trials=part(wanted, only) if only else None,
            max_trials=max_trials,
            retry_failed=retry_failed,
            results=results,
            address=address,
        )
        found.results.mkdir(parents=True, exist_ok=True)
        if not local:
            check_reachable(found.values.address)
    with wrong_input(ActivememError, ConnectionError):
        summary = carry_out(order, Store(found.results), found)
    if summary is None or summary.stopped:
        raise typer.Exit(INTERRUPTED)
    if summary.failed or summary.given_up:
        raise typer.Exit(FAILED)


@app.command()
def status(
    study: StudyName, *, overrides: Overrides = None, results: Results = None, as_json: AsJson = False
) -> None:
    """Say how many of a study's trials are done, failed and left, how far others came, and what was found."""
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from ..studies.leaders import leaders
    from ..studies.standing import standing
    from .finding import as_last_run
    from .leaders import lines
    from .settings import SettingsError, settings
    from .standing import as_data, failures, unfinished

    with wrong_input(SettingsError, StoreError, StudyError, OSError):
        store = Store(settings({"results": results}).results)
        found = as_last_run(study, store, overrides or ())
        now, best = standing(found, store), leaders(found, store.trials())
    if as_json:
        points = [{"values": each.values, "mean": each.mean} for each in best]
        give_json({"study": found.name, "title": found.title, **as_data(now), "best": points})
    else:
        title = wrap(f"{found.name} · {found.title}", WIDTH)
        give("\n".join([*title, now.words(), *unfinished(found, now), *failures(now), *lines(found, best)]))


@app.command("list")
def list_(*, results: Results = None, as_json: AsJson = False) -> None:
    """List the studies that come along, and those that the store knows."""
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from .catalogue import entries, lines
    from .settings import SettingsError, settings
    from .standing import as_data

    with wrong_input(SettingsError, StoreError, StudyError, OSError):
        found = entries(Store(settings({"results": results}).results))
    if as_json:
        give_json([{"study": each.name, "title": each.title, **as_data(now)} for each, now in found])
    else:
        give("\n".join(lines(found)))


class Form(StrEnum):
    """How the answer to a query is printed."""

    RICH = "rich"
    MARKDOWN = "markdown"
    CSV = "csv"


@app.command()
def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help='One statement, as "SELECT mixer, max_length FROM trials".')
    ],
    *,
    form: Annotated[Form, typer.Option("--format", help="How to print the answer.")] = Form.RICH,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to FILE: .parquet, .csv or .json.")
    ] = None,
    results: Results = None,
    as_json: AsJson = False,
) -> None:
    """Ask SQL of everything in the store: its tables are trials and metrics.

    Both have a column for each factor; trials has the final metrics, too, and metrics is long: epoch, step,
    name, value. A factor whose name is taken is factor_NAME. SELECT * FROM trials shows what there is.
    """
    from ..storage import Store, StoreError
    from ..studies.query import QueryError
    from ..studies.query import query as answered
    from . import querying
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, QueryError, OSError):
        answer = answered(Store(settings({"results": results}).results), sql)
        if out is not None:
            querying.save(answer, out)
        elif as_json:
            give_json(querying.records(answer))
        else:
            give(querying.printed(answer, form.value))
