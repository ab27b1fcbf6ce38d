"""`activemem task`: what can be learned."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import JsonOption
from ..output import print_json, print_stdout

app = typer.Typer(help="List the tasks that a study can name, and show one.", no_args_is_help=True)

TaskName = Annotated[str, typer.Argument(metavar="NAME", help="A task by its name.")]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List every task: its name, and what becomes of what."""
    from ...studies.catalog.tasks import require_task, task_names
    from ..views import tasks

    specs = [require_task(name) for name in task_names()]
    if as_json:
        print_json([tasks.task_to_dict(spec) for spec in specs])
    else:
        print_stdout("\n".join(tasks.format_tasks(specs)))


@app.command()
def show(*, name: TaskName, as_json: JsonOption = False) -> None:
    """Show a task: what it asks of a model, the keys of [task] that it takes, its source."""
    from ...studies.catalog.tasks import require_task
    from ..views import tasks

    spec = require_task(name)
    if as_json:
        print_json(tasks.task_to_dict(spec))
    else:
        print_stdout("\n".join(tasks.format_task(spec)))
