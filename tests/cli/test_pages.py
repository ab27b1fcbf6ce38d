"""Every command with JSON output has a page that describes it."""

import json

import typer

from activemem.cli import PAGES, command_line

FAULTS = "COMMAND FAULTY_STUDY"
"""What every command prints for a study file with faults."""


def commands(command, path=""):
    yield path.strip(), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def test_the_pages_are_those_of_all_commands_that_print_json():
    with_json = {
        path
        for path, command in commands(typer.main.get_command(command_line))
        if any("--json" in parameter.opts for parameter in command.params)
    }
    by_kind = {page for page in PAGES if page.split()[0] in ("list", "show")}  # two commands for all kinds
    assert set(PAGES) - by_kind | {page.split()[0] for page in by_kind} == with_json | {FAULTS}


def test_every_page_says_what_it_is():
    for command, page in PAGES.items():
        assert page.summary, command


def test_json_of_tables_is_not_of_a_format(run, tiny):
    refused = run("table", "render", tiny, "--json", "--format", "csv")
    assert "--format csv, got both" in refused.stderr


def test_faults_of_a_study_file_are_printed_as_json(run, tiny):
    for words in (("study", "plan"), ("study", "show"), ("study", "run")):
        told = run(*words, tiny, "--json", "--set", "train.optimizer.rate=1", "--set", "task.name=no")
        assert told.exit_code == 2
        assert told.stderr.startswith("tiny.toml: 3 faults\n")
        faults = json.loads(told.stdout)["faults"]
        assert {each["file"] for each in faults} == {tiny}
        assert [each["key"] for each in faults] == ["factors.task", "task.name", "train.optimizer.rate"]
    assert not run("study", "plan", tiny, "--set", "task.name=no").stdout
