"""Every command that prints JSON has a form, and a page that is not of its form is told."""

import pytest
import typer
from pydantic import ValidationError

from activemem.cli.app import app
from activemem.cli.schemas.forms import FORMS, check_page, json_schema

LINES = {"study propose", "study tell"}
"""Commands that print lines of JSON whether they are asked to or not."""


def commands(command, path=""):
    yield path.strip(), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def test_the_forms_are_those_of_all_commands_that_print_json():
    with_json = {
        path
        for path, command in commands(typer.main.get_command(app))
        if any("--json" in parameter.opts for parameter in command.params)
    }
    by_kind = {form for form in FORMS if form.split()[0] in ("list", "show")}  # two commands for all kinds
    assert set(FORMS) - by_kind | {form.split()[0] for form in by_kind} == with_json | LINES


def test_every_form_has_its_number_and_says_what_it_is():
    for command, schema in json_schema().items():
        assert "schema" in schema["required"], command
        assert schema["description"], command


def test_a_page_with_other_fields_is_not_of_its_form():
    page = {"schema": 1, "recipe": "sa", "id": "00000000"}
    check_page("recipe render", page)
    with pytest.raises(ValidationError):
        check_page("recipe render", {**page, "more": 1})
    with pytest.raises(ValidationError):
        check_page("recipe render", {"schema": 1, "recipe": "sa"})


def test_json_of_tables_and_new_names_is_of_its_form(run, tiny):
    assert run("recipe", "render", "sa", "--json").exit_code == 0
    assert run("table", "render", tiny, "--json").exit_code == 0
    refused = run("table", "render", tiny, "--json", "--format", "csv")
    assert "expected --json or --format csv, got both" in refused.stderr
