"""`study run` of a study with gates: stage by stage, each with its cost before it starts."""

import re
from pathlib import Path

from ...forked_commands import start_command
from ...study_texts import GATED


def test_the_cost_of_each_stage_is_printed_before_it_starts(run):
    Path("gated.toml").write_text(GATED, encoding="utf-8")
    found = run("study", "run", "gated.toml", "--local")
    assert found.exit_code == 0
    shown = [line for line in found.stderr.splitlines() if re.match("stage|gate [0-9]", line)]
    cost = "[0-9.]+ .?FLOPs(, at most .* of training)?"
    expected = [
        f"stage 1: 6 trials, {cost}",
        f"stage 2: 4 trials, {cost}",  # its claim compares parameters, which need no training
        *("gate 1: 6 of 12 trials open", "gate 2: 2 of 6 trials open"),
        f"stage 3: 2 trials, {cost}",
        *("gate 1: 6 of 12 trials open", "gate 2: 2 of 6 trials open"),
    ]
    assert len(shown) == len(expected)
    assert all(map(re.fullmatch, expected, shown))
    again = run("study", "run", "gated.toml", "--local")
    assert "stage" not in again.stderr


def test_watching_ends_although_a_gate_stays_closed(run):
    Path("gated.toml").write_text(GATED, encoding="utf-8")
    run("study", "run", "gated.toml", "--local")
    watching = start_command("study", "watch", "gated")
    try:
        told = watching.communicate(timeout=120)[1]
    finally:
        watching.kill()
    assert told == "gated: 12 of 18 trials done · 0 left · 6 held back by a gate\n"
