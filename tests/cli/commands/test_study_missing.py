"""`study missing`: missing ablations with their costs, and the study that trains them."""

import json
from pathlib import Path

from activemem import load_study

from ...study_texts import study_text
from ..store_factories import make_partial_store


def test_missing_cells_are_listed_with_their_costs_and_written_as_a_study_that_runs(run, tiny):
    told = run("study", "missing", tiny, "--write", "more.toml")
    assert "Parts never removed" in told.stdout
    assert "FLOPs" in told.stdout.splitlines()[-1]
    page = json.loads(run("study", "missing", tiny, "--json").stdout)
    asked = {trial for cell in page["cells"] for trial in cell["trials"]}
    written = load_study("more.toml")
    assert asked < {trial.id for trial in written.trials}
    assert page["held"] == {"task": "not"}
    assert run("study", "run", "more.toml", "--local").exit_code == 0
    assert run("table", "render", "tiny-missing").stdout.count("baseline") >= 2
    again = run("study", "missing", tiny, "--write", "rest.toml")
    assert "lacks 0 of " in again.stdout
    assert (again.exit_code, Path("rest.toml").exists()) == (2, False)


def test_long_changes_are_wrapped_below_their_own_column(run):
    recipes = [
        "delta(heads=2, head_width=4, gate=true, negative=true, short_conv=4, output_gate=silu)",
        "gla(heads=2, head_width=4, short_conv=4)",
    ]
    text = study_text(
        model={"recipe": "{mixer} >> ff(8)"}, task={"name": "copy"}, factors={"mixer": recipes, "seed": [0]}
    )
    Path("long.toml").write_text(text, encoding="utf-8")
    lines = run("study", "missing", "long.toml").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    change = next(place for place, line in enumerate(lines) if "− delta(heads" in line)
    assert lines[change + 1].startswith(" " * lines[change].index("− delta("))


def test_a_file_that_exists_is_not_overwritten(run, tiny):
    Path("more.toml").write_text("mine", encoding="utf-8")
    refused = run("study", "missing", tiny, "--write", "more.toml")
    assert refused.exit_code == 2
    assert "more.toml" in refused.stderr
    assert Path("more.toml").read_text(encoding="utf-8") == "mine"


def test_a_study_of_matched_sizes_says_that_only_parts_are_removed(run):
    Path("equal.toml").write_text(
        study_text(
            study={
                "match": "parameters",
                "baseline": {"mixer": "sa(heads=2, head_width=4)", "filter": 32},
                "tolerance": 0.05,
            },
            model={"recipe": "{mixer} >> ff({filter})", "d_model": 16},
            factors={"mixer": ["sa(heads=2, head_width=4)", "gru"], "task": None, "seed": [0]},
            task={"name": "copy"},
        ),
        encoding="utf-8",
    )
    assert "only parts are removed" in run("study", "missing", "equal.toml").stdout


def test_a_stored_study_is_found_by_name(run, tiny):
    make_partial_store(tiny)
    Path(tiny).rename("elsewhere.toml")
    found = run("study", "missing", "tiny")
    assert (found.exit_code, found.stderr) == (0, "")
    assert "task = not" in " ".join(found.stdout.split())


def test_the_study_that_is_written_names_the_users_own_files(run):
    Path("my.txt").write_text("".join(f"the cat sat on mat {number}\n" for number in range(400)))
    text = study_text(
        task={"name": "language_model", "corpus": {"path": "my.txt"}, "tokens": "characters", "context": 8},
        train={"curriculum": None},
        factors={"mixer": ["conv(k=3)", "conv(k=5)"], "task": None, "seed": [0]},
    )
    Path("own.toml").write_text(text, encoding="utf-8")
    assert run("study", "missing", "own.toml", "--write", "more.toml").exit_code == 0
    assert len(load_study("more.toml").trials) == 4
