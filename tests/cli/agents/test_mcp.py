"""An agent speaks the Model Context Protocol: it reads, checks ideas, and trains within its budget."""

import json
import os
import sys
from pathlib import Path

import pytest

from activemem.engine.core.resources import Machine
from activemem.engine.run.driver import run_study
from activemem.storage import Store
from activemem.studies.study import load_study

from ...study_texts import study_text

pytest.importorskip("mcp", reason="the extra activemem[mcp] is not installed")

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from activemem.cli.agents.server import make_server
from activemem.cli.machine_settings import load_settings

READ = {
    "recipe_check", "recipe_nearest", "study_list", "study_show", "study_plan", "study_status",
    "study_results", "search_propose", "idea_check",
}  # fmt: skip


@pytest.fixture
def search():
    text = study_text(
        study={"name": "kernels", "title": "Kernels"},
        model={"recipe": "conv(k={k}) >> ff(8)"},
        task={"name": "addition"},
        train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 4, "epochs": 1, "steps_per_epoch": 1},
        factors={"seed": [0, 1]},
        search={"sampler": "random", "trials": 3, "metric": "loss", "direction": "min"},
        space={"k": "integer(2, 9)"},
    )
    Path("kernels.toml").write_text(text, encoding="utf-8")
    return "kernels.toml"


def ask(server, *calls):
    """The structured answers to calls of tools, or the text of an error."""

    async def talk():
        async with Client(server) as client:
            answers = []
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                answers.append(result.content[0].text if result.is_error else result.structured_content)
            return answers, {tool.name for tool in (await client.list_tools()).tools}

    return anyio.run(talk)


def test_without_a_budget_an_agent_only_reads(search):
    _, tools = ask(make_server(load_settings({"results": "results"})))
    assert tools == READ
    _, tools = ask(make_server(load_settings({"results": "results"}), 60.0))
    assert tools == READ | {"search_tell", "study_run"}


def test_an_idea_is_checked_deduplicated_and_held_against_the_noise(search):
    store, study = Store("results"), load_study(search)
    run_study(study, store, Machine(), local=True, max_trials=2)
    tried = store.trials()["recipe"][0]
    known, new, wrong, broken, told, checked = ask(
        make_server(load_settings({"results": "results"}), 60.0),
        ("idea_check", {"study": search, "recipe": tried}),
        ("idea_check", {"study": search, "recipe": next(
            f"conv(k={k}) >> ff(8)" for k in range(2, 10) if f"k={k})" not in tried
        )}),
        ("idea_check", {"study": search, "recipe": "conv(k=50) >> ff(8)"}),
        ("idea_check", {"study": search, "recipe": "conv(k=5"}),
        ("search_tell", {"study": search, "values": {"k": 50}}),
        ("recipe_check", {"recipe": "2 * choice(sa, conv(k=integer(3, 5)))"}),
    )[0]  # fmt: skip
    assert (known["answer"], known["results"]["loss"]["n"]) == ("known", 2)
    assert known["noise"]["loss"]["degrees"] == 1
    assert known["noise"]["loss"]["difference"] > known["noise"]["loss"]["sd"] > 0
    assert (new["answer"], "results" in new) == ("new", False)
    assert 0 < new["nearest"][0]["distance"] < 0.5
    assert new["cost"]["parameters"] > 0 < new["cost"]["seconds"]
    assert (wrong["answer"], wrong["faults"]) == (
        "refused",
        ["recipe: conv(k=50) >> ff(8) is not in the space of kernels"],
    )
    assert "this parenthesis is never closed" in broken
    assert told["faults"] == ["k: expected integer(2, 9), got 50"]
    assert checked["architectures"] == "4 architectures"


def test_the_plan_of_an_agent_is_the_one_of_the_command(tiny, search, run):
    server = make_server(load_settings({"results": "results"}))
    found = ask(server, ("study_plan", {"study": tiny}), ("study_plan", {"study": search}))[0]
    for study, page in zip((tiny, search), found, strict=True):
        assert page["memory"]["optimizer"]
        assert page == json.loads(run("study", "plan", study, "--json", "--results", "results").stdout)


def test_a_study_is_planned_and_its_tables_and_status_are_read(tiny):
    plan, status, results = ask(
        make_server(load_settings({"results": "results"})),
        ("study_plan", {"study": tiny}),
        ("study_status", {"study": tiny}),
        ("study_results", {"study": tiny}),
    )[0]
    assert (plan["schema"], plan["total"], status["left"]) == (1, 8, 8)
    assert [table["name"] for table in results["tables"]] == ["table4", "losses"]
    assert (results["overrides"], results["ours"]) == ([], [])


@pytest.mark.slow
def test_an_agent_hands_in_an_idea_and_trains_it_in_a_process_of_its_own(search):
    command = ["-m", "activemem", "mcp", "--budget", "5m", "--results", "results"]

    async def talk():
        transport = stdio_client(
            StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        )
        async with Client(transport) as client:
            told = await client.call_tool("search_tell", {"study": search, "values": {"k": 5}})
            run = await client.call_tool("study_run", {"study": search, "max_trials": 2, "seconds": 200})
            known = await client.call_tool("search_tell", {"study": search, "recipe": "conv(k=5) >> ff(8)"})
            listed = await client.call_tool("study_list", {})
            late = await client.call_tool("study_run", {"study": search, "seconds": 0.01})
            return [json.loads(each.content[0].text) for each in (told, run, known, listed, late)]

    told, run, known, listed, late = anyio.run(talk)
    assert (told["answer"], known["answer"]) == ("accepted", "known")
    assert (run["exit_status"], run["timed_out"], run["done"]) == (0, False, 2)
    assert {"quickstart", "kernels"} <= {entry["study"] for entry in listed["studies"]}
    assert (late["timed_out"], 0 < late["budget_left_s"] < run["budget_left_s"] < 300) == (True, True)
