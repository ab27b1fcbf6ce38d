"""`activemem report`: all that a study is and found, on one page.

The page is made in `studies`; what is added here is the diagram of each recipe, as `recipe show` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Results
from .streams import give, wrong_input

if TYPE_CHECKING:
    from ..studies.settings import Settings

app = typer.Typer(help="Write a study up as a page.", no_args_is_help=True)


@app.command()
def build(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page's file; else STUDY.html in this folder.")
    ] = None,
    results: Results = None,
) -> None:
    """Write one HTML page that needs nothing else, and print its name.

    It has the study's question, recipes, tables, figures, claims, failures, settings and provenance, and the
    commands that repeat it.
    """
    from ..storage import Store, StoreError
    from ..studies.claims.verdicts import ClaimError
    from ..studies.curve import CurveError
    from ..studies.faults import StudyError
    from ..studies.page import report
    from ..studies.table import TableError
    from .finding import as_last_run
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, TableError, CurveError, ClaimError, OSError):
        store = Store(settings({"results": results}).results)
        found = as_last_run(study, store)
        path = out or Path(f"{found.name}.html")
        path.write_text(report(found, store, _drawn), encoding="utf-8")
    give(str(path))


def _drawn(settings: Settings) -> str:
    """The diagram of a trial's model, for sequences as long as those of the costs beside it."""
    from ..grammar import parse
    from ..studies.costs import frame, sequence
    from ..studies.demands import demand
    from . import diagram
    from .sizes import Sizes

    asked = demand(settings.task)
    sizes = Sizes(
        frame=frame(settings.model, asked),
        length=sequence(settings),
        batch=settings.train.batch_size,
        past=asked.past,
    )
    recipe = parse(settings.model.recipe)
    return diagram.picture(recipe, sizes.analyse(recipe), sizes)
