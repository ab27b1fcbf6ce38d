"""A separate working directory for every test, and two ways to run a command in it."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import typer.testing
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typer.testing import CliRunner

from activemem.cli import PAGES, command_line

from ..forked_commands import run_command
from ..study_texts import study_text

typer.testing._get_command = cache(typer.testing._get_command)  # it would read all signatures for each run


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    for variable in [name for name in os.environ if name.startswith("ACTIVEMEM_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


class NullableNumbers(GenerateJsonSchema):
    """JSON has neither infinity nor NaN: such numbers are null."""

    def float_schema(self, schema):
        return super().float_schema(schema) | {"type": ["number", "null"]}


@cache
def _schema_of(form):
    return TypeAdapter(PAGES[form]).json_schema(mode="serialization", schema_generator=NullableNumbers)


def _form_of(words):
    """Return the name of the form of a command's page."""
    return {"show": "show NAME", "list": "list KIND"}.get(words[0], " ".join(words))


@pytest.fixture
def run():
    """Return a function that runs a command in this process: exit_code, stdout and stderr."""

    def invoke(*arguments):
        done = CliRunner().invoke(command_line, arguments, catch_exceptions=False)
        if "--json" in arguments and done.stdout:
            page = json.loads(done.stdout)
            is_faulty_study = done.exit_code == 2 and arguments[0] != "recipe"
            form = "COMMAND FAULTY_STUDY" if is_faulty_study else _form_of(arguments[:2])
            jsonschema.validate(page, _schema_of(form))
            assert page.keys() == {"schema", *_schema_of(form)["properties"]}
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
