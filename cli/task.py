"""`activemem task`: what can be learned."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import AsJson
from .streams import give, give_json, wrong_input

app = typer.Typer(help="List the tasks that a study can name, and show one.", no_args_is_help=True)

TaskName = Annotated[str, typer.Argument(metavar="NAME", help="A task by its name.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List every task: its name, and what becomes of what."""
    from ..studies.tasks import require_task, task_names
    from . import tasks

    specs = [require_task(name) for name in task_names()]
    if as_json:
        give_json([tasks.data(spec) for spec in specs])
    else:
        give("\n".join(tasks.lines(specs)))


@app.command()
def show(*, name: TaskName, as_json: AsJson = False) -> None:
    """Show a task: what it asks of a model, the keys of [task] that it takes, its source."""
    from ..studies.tasks import TaskError, require_task
    from . import tasks

    with wrong_input(TaskError):
        spec = require_task(name)
    if as_json:
        give_json(tasks.data(spec))
    else:
        give("\n".join(tasks.picture(spec)))
