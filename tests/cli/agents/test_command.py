"""`activemem mcp` without its extra, and with a budget that is no time."""

import sys


def test_without_the_extra_the_command_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    refused = run("mcp")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("expected the extra of agents, pip install 'activemem[mcp]', got none")


def test_a_budget_is_a_time(run):
    refused = run("mcp", "--budget", "much")
    assert refused.exit_code == 2
    assert "expected a time such as 30s, 5m or 1h, got 'much'" in refused.stderr
