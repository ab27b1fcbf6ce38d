"""A separate working directory for every test, and two ways to run a command in it."""

import json
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

import pytest
import typer.testing
from typer.testing import CliRunner

from activemem.cli import PAGES, command_line
from activemem.reporting.tables.table import Table
from activemem.storage import Store
from activemem.studies.study import Study

from ..forked_commands import run_command
from ..study_texts import study_text

typer.testing._get_command = cache(typer.testing._get_command)  # it would read all signatures for each run


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("ACTIVEMEM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


def _check(value, kind, where):
    """Check that JSON has the fields that its type has, at every depth that the type describes."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is not None:
            results = [each for each in inner if is_dataclass(each)]
            _check(value, results[0] if len(results) == 1 and isinstance(value, dict) else None, where)
    elif kind in (Study, Store, Table):  # have a short form
        assert isinstance(value, str | list), where
    elif is_dataclass(kind):
        hints = get_type_hints(kind)
        names = {each.name for each in fields(kind)}
        assert value.keys() >= names, where  # a subclass has more
        for name in names:
            _check(value[name], hints[name], f"{where}.{name}")
    elif isinstance(value, list) and len(inner) == (2 if inner[1:] == (...,) else 1):
        for each in value:
            _check(each, inner[0], f"{where}[]")
    elif isinstance(value, dict) and len(inner) == 2:
        for name, each in value.items():
            _check(each, inner[1], f"{where}.{name}")
    elif kind in (str, int, bool):
        assert type(value) is kind, where
    elif kind is float:
        assert value is None or isinstance(value, float | int), where


def _form_of(words):
    """Return the name of a command's page."""
    return {"show": "show NAME", "list": "list KIND", "judge": "judge"}.get(words[0], " ".join(words))


@pytest.fixture
def run():
    """Return a function that runs a command in this process: exit_code, stdout and stderr."""

    def invoke(*arguments):
        done = CliRunner().invoke(command_line, arguments, catch_exceptions=False)
        if "--json" in arguments and done.stdout:
            page = json.loads(done.stdout)
            is_faulty_study = done.exit_code == 2 and arguments[0] != "recipe"
            form = "COMMAND FAULTY_STUDY" if is_faulty_study else _form_of(arguments[:2])
            assert page.keys() == {"schema", *PAGES[form].fields}
            for name, kind in PAGES[form].fields.items():
                _check(page[name], kind, name)
        return done

    return invoke


@pytest.fixture
def steps_of_a_second(monkeypatch):
    """Make each measured step take one second, on a machine with two cores without bf16."""
    monkeypatch.setattr("activemem.engine.run.planning.cpu_has_bf16", lambda: False)
    monkeypatch.setattr("activemem.engine.run.planning.cpus_here", lambda: 2.0)
    monkeypatch.setattr("activemem.engine.run.step_times._measure_step", lambda *_: 1.0)
    remember = "activemem.engine.run.planning.remember"  # what is not so stays out of the cache
    monkeypatch.setattr(remember, lambda what, of, measure: measure())


@pytest.fixture
def run_python():
    """Return a function that runs Python in its own process."""

    def start(*arguments, **environment):
        return subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
            timeout=600,
            check=False,
        )

    return start


@pytest.fixture
def process():
    """Return a function that runs a command in its own process."""

    def start(*words, **environment):
        return run_command(*words, environment=environment)

    return start


@pytest.fixture
def tiny():
    """Write a study of eight short trials to the working directory; return its path."""
    text = study_text(
        study={"title": "A study of seconds", "paper": "active-memory-transformer"},
        model={"recipe": "1 * ({mixer} >> ff(8))"},
        train={"optimizer": {"name": "adam", "lr": 0.01}},
        factors={
            "mixer": ["sa(heads=1, head_width=4)", "conv(k=3)"],
            "task": ["not", "reverse"],
            "seed": [0, 1],
        },
        table=[
            {"name": "table4", "rows": "mixer", "columns": "task", "value": "max_length"},
            {"name": "losses", "rows": "mixer", "columns": "task", "value": "loss"},
        ],
    )
    Path("tiny.toml").write_text(text, encoding="utf-8")
    return "tiny.toml"
