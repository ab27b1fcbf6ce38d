"""Generated parts of the reference: commands, metrics, samplers, corpora and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from activemem import errors
from activemem.cli.app import command_line as program
from activemem.studies import dataset_names, require_dataset
from activemem.studies.catalog.metrics import METRICS, TARGETS
from activemem.studies.catalog.samplers import SAMPLERS, SCHEDULERS


def command_line() -> str:
    """Return a section for each command, with its arguments and options."""
    lines: list[str] = []
    for path, command in _commands(typer.main.get_command(program), "activemem"):
        lines += [f"## `{path}`", "", _paragraphs(command.help or "")]
        rows = [_parameter(each) for each in command.params if "--help" not in each.opts]
        if rows:
            lines += ["", _table(("argument or option", "meaning"), rows)]
        lines.append("")
    return "\n".join(lines).rstrip()


def metrics() -> str:
    """Return a row for each metric of the package."""
    arrows = {True: "higher", False: "lower", None: "–"}
    rows = [
        (f"`{metric.name}`", arrows[metric.higher_is_better], metric.title, ", ".join(metric.index_titles))
        for metric in (*METRICS.values(), *TARGETS.values())
    ]
    return _table(("metric", "better", "meaning", "indices"), rows)


def samplers() -> str:
    """Return a row for each sampler with its source."""
    return _table(("sampler", "source"), _parts(SAMPLERS))


def schedulers() -> str:
    """Return a row for each scheduler with its source."""
    return _table(("scheduler", "source"), _parts(SCHEDULERS))


def corpora() -> str:
    """Return a row for each corpus with its licence and source."""
    rows = [
        (f"`{name}`", corpus.title, corpus.licence, corpus.source)
        for name in dataset_names()
        for corpus in [require_dataset(name)]
    ]
    return _table(("corpus", "content", "licence", "source"), rows)


def error_tree() -> str:
    """Return the tree of exceptions from the docstring of `errors`."""
    _, _, tree = (inspect.getdoc(errors) or "").split("\n\n", maxsplit=2)
    return f"```\n{tree}\n```"


CATALOGS = {
    "command_line": command_line,
    "metrics": metrics,
    "samplers": samplers,
    "schedulers": schedulers,
    "corpora": corpora,
    "error_tree": error_tree,
}
"""The generators by the name in a document's mark."""


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- a command of click's
    """Yield every command without subcommands, with its full name."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, each in inner.items():
        yield from _commands(each, f"{path} {name}")


def _parameter(parameter: Any) -> tuple[str, str]:  # noqa: ANN401 -- a parameter of click's
    """Return the usage of an argument or option, and its help."""
    if parameter.param_type_name == "argument":
        written = parameter.metavar or parameter.name.upper()
    else:
        kind = getattr(parameter, "type_descriptor", None) or parameter.type  # by typer's age
        value = parameter.metavar or "|".join(getattr(kind, "choices", None) or ())
        written = ", ".join([*parameter.opts, *parameter.secondary_opts])
        written += "" if parameter.is_flag or not value else f" {value}"
    return f"`{written}`".replace("|", "\\|"), _paragraphs(parameter.help or "").replace("|", "\\|")


def _parts(registry: Any) -> list[tuple[str, str]]:  # noqa: ANN401 -- a registry of any entries
    """Return the names and sources in a registry of the package."""
    return [(f"`{name}`", registry[name].source) for name in registry]


def _paragraphs(text: str) -> str:
    """Return a help text, each of its paragraphs on one line."""
    return "\n\n".join(re.sub(r"\s+", " ", part).strip() for part in re.split(r"\n\s*\n", text))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, [":--"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
