"""`agent-guide`: guidance for programs."""

import re


def test_the_guide_for_agents_names_commands_that_exist(run):
    guide = run("agent-guide").stdout
    commands = set(re.findall(r"^    .*?activemem ([a-z]+ [a-z]+)", guide, re.MULTILINE))
    assert {"study plan", "study run", "claim check", "recipe check"} <= commands
    for command in commands:
        assert run(*command.split(), "--help").exit_code == 0, command
