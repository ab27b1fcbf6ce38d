"""`activemem judge` on the command line: its output, its files and its exit status."""

import json
from pathlib import Path

import pytest

RUNS = "arm,seed,loss\n" + "".join(
    f"{arm},{seed},{start + 0.01 * (seed * 7 % 3)}\n"
    for arm, start in (("plain", 1.0), ("tuned", 0.8))
    for seed in range(4)
)
BETTER = "loss[arm=tuned] < loss[arm=plain]"


@pytest.fixture(autouse=True)
def _beside_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(RUNS)


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ((), 0),
        ((BETTER,), 0),
        ((BETTER, "loss[arm=tuned] > loss[arm=plain]"), 1),
        ((BETTER, "loss[arm=tuned] < loss[arm=plain] - 0.2"), 3),
    ],
)
def test_the_exit_status_tells_of_claims(run, claims: tuple[str, ...], status: int) -> None:
    result = run("judge", "runs.csv", *(word for claim in claims for word in ("--claim", claim)))
    assert result.exit_code == status
    assert "judged, not trained here: runs.csv" in result.stdout
    assert "note: The metric is loss, by its name." in result.stderr


def test_runs_without_a_verdict_exit_with_2_and_a_sentence(run) -> None:
    Path("runs.csv").write_text("arm,loss\na,1\nb,2\n")
    result = run("judge", "runs.csv", "--factor", "arm")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the best of 2 is a selection" in result.stderr


def test_the_understood_file_gives_the_same_output(run) -> None:
    first = run("judge", "runs.csv", "--baseline", "plain", "--claim", BETTER, "--write", "out/judge.toml")
    assert first.exit_code == 0
    assert 'file = "../runs.csv"' in Path("out/judge.toml").read_text()
    assert run("judge", "out/judge.toml").stdout == first.stdout
    assert run("judge", "runs.csv", "--write", "out/judge.toml").exit_code == 2
    assert run("judge", "out/judge.toml", "--pair", "seed").exit_code == 2


@pytest.mark.parametrize(
    "command",
    [("study", "plan"), ("study", "run"), ("table", "render"), ("report", "build")],
)
def test_commands_of_a_store_refuse_runs_in_a_line(run, command: tuple[str, str]) -> None:
    run("judge", "runs.csv", "--write", "judge.toml")
    result = run(*command, "judge.toml")
    assert result.exit_code != 0
    assert "activemem judge judge.toml" in result.stderr


def test_json_has_the_origin_of_every_number(run) -> None:
    page = json.loads(run("judge", "runs.csv", "--claim", BETTER, "--json").stdout)
    assert page["origin"].startswith("judged, not trained here: runs.csv (sha256 ")
    origins = {each["origin"] for each in (*page["cells"], *page["claims"])}
    assert origins == {f"8 runs · {page['origin']}"}
    assert page["claims"][0]["deciding"]["groups"] == [4, 4]


def test_figures_are_drawn_with_the_mark(run) -> None:
    result = run("judge", "runs.csv", "--figures", "figures", "--format", "latex")
    assert result.exit_code == 0
    assert "judged, not trained here" in result.stdout
    assert "judged, not trained here" in Path("figures/runs-loss.svg").read_text()
