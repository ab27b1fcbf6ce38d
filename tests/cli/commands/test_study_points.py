"""`activemem study propose` and `study tell`: JSON lines out and in."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from activemem.cli import command_line

from ...study_texts import study_text


@pytest.fixture
def search():
    text = study_text(
        study={"name": "kernels", "title": "Kernels"},
        model={"recipe": "conv(k={k}) >> ff(8)"},
        task={"name": "addition"},
        train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 4, "epochs": 1, "steps_per_epoch": 1},
        search={"sampler": "random", "trials": 3, "metric": "loss", "direction": "min"},
        space={"k": "integer(2, 9)"},
    )
    Path("kernels.toml").write_text(text, encoding="utf-8")
    return "kernels.toml"


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def tell(search, *points):
    text = "\n".join(point if isinstance(point, str) else json.dumps(point) for point in points)
    return CliRunner().invoke(command_line, ["study", "tell", search], input=text, catch_exceptions=False)


def test_a_line_that_is_proposed_is_handed_in_as_it_is_and_trained_with_those_of_a_program(run, search):
    proposed = run("study", "propose", search, "-n", "2")
    first, _ = lines(proposed.stdout)
    assert first["proposed_by"] == "random"
    told = tell(search, first, "", {"recipe": "conv(k=4) >> ff(8)"}, {"values": {"k": 11}, "mean": 1})
    assert told.exit_code == 1
    assert [(each["line"], each["answer"]) for each in lines(told.stdout)] == [
        (1, "accepted"),
        (3, "accepted"),
        (4, "refused"),
    ]
    status = run("study", "status", search).stdout
    assert "3 left · 2 handed in" in status
    assert sorted(line.split() for line in status.splitlines()[-2:]) == sorted(
        [f"k={k}", "seed", "0", "waiting"] for k in (4, first["values"]["k"])
    )
    assert run("study", "run", search, "--local", "--max-trials", "2").exit_code == 0
    known = tell(search, first, {"values": {"k": 4}})
    assert [each["answer"] for each in lines(known.stdout)] == ["known", "known"]
    assert all(each["results"]["loss"]["n"] == 1 for each in lines(known.stdout))
    few = run("study", "propose", search, "-n", "2")
    assert len(lines(few.stdout)) == 1
    assert few.stderr.startswith("kernels has no more ")


def test_a_grid_has_nothing_to_propose(run, tiny):
    refused = run("study", "propose", tiny)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "got a grid of 8" in refused.stderr


def test_points_that_wait_are_taken_back_by_forgetting_the_study(run, search):
    tell(search, {"values": {"k": 4}}, {"values": {"k": 5}})
    forgotten = json.loads(run("study", "forget", search, "--json").stdout)
    assert len(forgotten["trials"]) == 2
    assert [each["answer"] for each in lines(tell(search, {"values": {"k": 4}}).stdout)] == ["accepted"]
