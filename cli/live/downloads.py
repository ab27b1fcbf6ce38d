"""Display of a download: a bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ...engine import corpora


@contextmanager
def download_progress() -> Iterator[corpora.Progress]:
    """Yield a function that shows the progress of files on standard error, until the context ends."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda _name, _size, _total: None
        return
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(name: str, size: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name)
            bars.update(tasks[name], completed=size, total=total)

        yield show
