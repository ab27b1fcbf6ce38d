"""`activemem report`: all that a study is and found, on one page.

The page is made in `studies`; what is added here is the diagram of each recipe, as `recipe show` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import ResultsOption
from ..output import exit_on_error, print_stdout

if TYPE_CHECKING:
    from ...studies.schema.settings import TrialSettings

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
    results: ResultsOption = None,
) -> None:
    """Write one HTML page that needs nothing else, and print its name.

    It has the study's question, recipes, tables, figures, claims, failures, settings and provenance, and the
    commands that repeat it.
    """
    from ...reporting.claims.verdicts import ClaimError
    from ...reporting.curves.curve import CurveError
    from ...reporting.page import report
    from ...reporting.tables.table import TableError
    from ...storage import Store, StoreError
    from ...studies.lookup import load_last_run
    from ...studies.text.errors import StudyError
    from ..machine_settings import SettingsError, load_settings

    with exit_on_error(SettingsError, StoreError, StudyError, TableError, CurveError, ClaimError, OSError):
        store = Store(load_settings({"results": results}).results)
        found = load_last_run(study, store)
        path = out or Path(f"{found.name}.html")
        path.write_text(report(found, store, _draw_diagram), encoding="utf-8")
    print_stdout(str(path))


def _draw_diagram(settings: TrialSettings) -> str:
    """The diagram of a trial's model, for sequences as long as those of the costs beside it."""
    from ...grammar import parse
    from ...reporting.recipes import svg
    from ...reporting.recipes.sizes import Sizes
    from ...studies.resolve.costs import frame, sequence_tokens
    from ...studies.resolve.model_interface import model_interface

    asked = model_interface(settings.task)
    sizes = Sizes(
        frame=frame(settings.model, asked),
        length=sequence_tokens(settings),
        batch=settings.train.batch_size,
        past=asked.past,
    )
    recipe = parse(settings.model.recipe)
    return svg.render(recipe, sizes.analyse(recipe), sizes)
