"""`activemem task`: what can be learned."""

from __future__ import annotations

from typing import Annotated

import typer

from ...options import JsonOption
from ...output import print_json, print_stdout
from ...plugin_loading import tell_broken

app = typer.Typer(help="List the tasks that a study can name, and show one.", no_args_is_help=True)

TaskName = Annotated[str, typer.Argument(metavar="NAME", help="A task by its name.")]


@app.command("list")
def list_(as_json: JsonOption = False) -> None:
    """List every task: its name, what becomes of what, and whose it is.

    Plug-ins that cannot be used are listed on standard error.
    """
    from ....plugins import broken_plugins
    from ....studies.catalog.tasks import require_task, task_names
    from ...views import tasks

    told = broken_plugins()
    specs = [require_task(name) for name in task_names()]
    if as_json:
        print_json({"tasks": [tasks.task_to_dict(spec) for spec in specs]})
    else:
        print_stdout("\n".join(tasks.format_tasks(specs)))
    tell_broken(told)


@app.command()
def show(*, name: TaskName, as_json: JsonOption = False) -> None:
    """Show a task: what it asks of a model, the keys of [task] that it takes, its source.

    A plug-in's task draws an example with its defaults.
    """
    from ....studies.catalog.tasks import GeneratedTask, require_task
    from ...views import tasks

    spec = require_task(name)
    if as_json:
        print_json(tasks.task_to_dict(spec))
    else:
        drawn = None
        if issubclass(spec.settings, GeneratedTask):
            from ....engine.tasks.generated import show_example

            drawn = show_example(spec.settings(name=name))
        print_stdout("\n".join(tasks.format_task(spec, drawn)))
