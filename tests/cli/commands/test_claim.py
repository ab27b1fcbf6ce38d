"""Claims on the command line: text in eighty columns, JSON, and the exit status."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from activemem import load_study
from activemem.reporting.claims.verdicts import format_p
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import store_outcome

CLAIMS = '''
[[claim]]
name = "convolution goes further than attention"
source = "Table 4"
holds = """
all(max_length[task=t, mixer=conv(k=3)] > max_length[task=t, mixer=sa(heads=1, head_width=4)] for t in task)
"""

[[claim]]
name = "attention reaches 7 on not"
holds = "max_length[task=not, mixer=sa(heads=1, head_width=4)] >= 7"

[[claim]]
name = "attention passes 7 on not"
holds = "max_length[task=not, mixer=sa(heads=1, head_width=4)] > 7"
'''
VALUES = {
    ("sa(heads=1, head_width=4)", "not"): (7.0, 7.0, 7.0),
    ("sa(heads=1, head_width=4)", "reverse"): (9.0, 8.0, 12.0),
    ("conv(k=3)", "not"): (41.0, 40.0, 41.0),
    ("conv(k=3)", "reverse"): (11.0, 9.0, 11.0),
}


@pytest.fixture
def claiming(tiny):
    """Return a store with a study with claims; more claims or fewer values are optional."""

    def write(claims=CLAIMS, values=VALUES):
        path = Path(tiny)
        text = path.read_text(encoding="utf-8").replace("seed = [0, 1]", "seed = [0, 1, 2]") + claims
        path.write_text(text, encoding="utf-8")
        study, store = load_study(path), Store("results")
        for trial in study.trials:
            ends = values.get((trial.levels["mixer"], trial.levels["task"]), ())
            if len(ends) > trial.levels["seed"]:
                store_outcome(trial, store, value=ends[trial.levels["seed"]])
        store.records.save(study.name, {"text": text, "overrides": [], "path": str(path)})

    return write


def test_claims_are_reported_in_eighty_columns(run, claiming, golden):
    claiming()
    result = run("claim", "check")
    assert (result.exit_code, result.stderr) == (3, "")
    golden(result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_only_the_named_claims_are_checked(run, claiming, golden):
    claiming()
    names = ("attention reaches 7 on not", "convolution goes further than attention")
    result = run("claim", "check", "--claim", names[0], "--claim", names[1])
    assert result.exit_code == 3
    assert re.findall("^  [a-z]+ +(.*)", result.stdout, re.MULTILINE)[0].startswith(names[1])
    assert "attention passes 7" not in result.stdout
    page = json.loads(run("claim", "check", "--claim", names[0], "--json").stdout)
    assert [claim["spec"]["name"] for claim in page["claims"]] == [names[0]]
    wrong = run("claim", "check", "--claim", "attention reaches 8 on not", "--claim", "x")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    golden(wrong.stderr)


def test_the_name_of_a_claim_for_each_level_selects_all_of_them(run, claiming):
    holds = "max_length[mixer=conv(k=3)] > max_length[mixer=sa(heads=1, head_width=4)]"
    claiming(claims=f'\n[[claim]]\nname = "ahead"\neach = "task"\nholds = "{holds}"\n')
    both = run("claim", "check", "--claim", "ahead")
    one = run("claim", "check", "--claim", "at task=not: ahead")
    assert (both.stdout.count(": ahead"), one.stdout.count(": ahead")) == (2, 1)


@pytest.mark.parametrize(
    ("seeds", "claim", "status"),
    [
        (3, "attention reaches 7 on not", 0),
        (3, "attention is behind on not", 0),
        (3, "attention is ahead on not", 1),
        (3, "attention passes 7 on not", 3),
        (1, "attention is behind on not", 3),
        (0, "attention is behind on not", 1),
    ],
)
def test_the_exit_status_says_how_claims_are_decided(seeds, claim, status, run, claiming):
    sides = ("max_length[task=not, mixer=sa(heads=1, head_width=4)]", "max_length[task=not, mixer=conv(k=3)]")
    further = "".join(
        f'\n[[claim]]\nname = "attention is {word} on not"\nholds = "{sides[0]} {sign} {sides[1]}"\n'
        for word, sign in (("behind", "<"), ("ahead", ">"))
    )
    claiming(CLAIMS + further, {cell: values[:seeds] for cell, values in VALUES.items()})
    assert run("claim", "check", "--claim", claim).exit_code == status


def test_the_settings_that_a_papers_verdict_depends_on_are_shown_next_to_it(run, claiming):
    claiming()
    path = Path("tiny.toml")
    overrides = ["train.epochs=3", "factors.seed=[0]"]
    Store("results").records.save("tiny", {"text": path.read_text(), "overrides": overrides})
    told = " ".join(run("claim", "check").stdout.split())
    assert "the study's file: train.epochs=3." in told
    path.write_text(path.read_text() + _sources(path.read_text()))
    told = " ".join(run("claim", "check", str(path)).stdout.split())
    assert re.search("1 setting and .* not from", told)
    assert json.loads(run("claim", "check", str(path), "--json").stdout)["ours"] == ["train.batch_size"]


def _sources(text):
    """Return a table [source] in which all settings but the batch size come from the paper."""
    keys = {"model": "model", "task": "task", "factors": "factors"}
    told = "".join(f'{key} = "paper: 4.2"\n' for key in keys)
    train = "".join(
        f'train.{key} = "paper: 4.2"\n' for key in tomllib.loads(text)["train"] if key != "batch_size"
    )
    return f'[source]\n{told}{train}train.batch_size = "ours: small"\n'


def test_a_refuted_claim_is_reported_by_the_exit_status(run, claiming):
    claiming(CLAIMS + '[[claim]]\nname = "no"\nholds = "max_length[task=not, mixer=conv(k=3)] <= 7"\n')
    result = run("claim", "check", "tiny")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "  refuted     no                  " in result.stdout


def test_claims_for_a_program(run, claiming):
    claiming()
    page = json.loads(run("claim", "check", "--json").stdout)
    assert page["study"] == "tiny"
    first, second, _third = page["claims"]
    assert first["spec"]["name"] == "convolution goes further than attention"
    assert (first["spec"]["source"], first["spec"]["test"], first["spec"]["level"]) == (
        "Table 4",
        "pooled",
        0.95,
    )
    assert {key: first[key] for key in ("verdict", "looks", "level", "seeds", "needed")} == {
        "verdict": "undecided",
        "looks": [3],
        "level": 0.975,
        "seeds": 3,
        "needed": 53,
    }
    assert first["deciding"] == first["findings"][1]
    (only,) = second["findings"]
    assert only == {
        "text": "max_length[mixer=sa(heads=1, head_width=4), task=not] >= 7",
        "label": only["label"],
        "verdict": "confirmed",
        "effect": 0.0,
        "interval": pytest.approx([-0.717, 0.717], abs=1e-3),
        "p": pytest.approx(0.0267, abs=1e-4),
        "test": "t",
        "n": 3,
        "degrees": 2.0,
        "needed": None,
        "decimals": 1,
        "unit": "",
        "is_ratio": False,
        "added": 0.0,
        "tested_for": "difference from 7",
        "bounds": None,
        "gaps": [],
        "notes": [],
        "at_bound": False,
        "decides_part": True,
        "groups": [],
    }


def test_claims_without_results_are_reported_in_a_line(run, claiming):
    claiming(values={})
    result = run("claim", "check")
    assert result.exit_code == 1
    first, *others = result.stdout.splitlines()
    assert first == "  not run   convolution goes further than attention                   n = 0 of 3"
    assert "            4 cells: 3 of 3 seeds not run" in others
    claiming(claims="", values={**VALUES, ("conv(k=3)", "not"): (41.0, 40.0)})
    told = run("claim", "check").stdout
    assert "              mixer=conv(k=3), task=not: 1 of 3 seeds not run\n" in told
    assert "    undecided   not " in told
    assert told.count("n = 2 of 3") == 2


def test_a_task_that_no_model_has_learnt_is_named_beside_the_verdicts(run, claiming):
    claiming(values=VALUES | {key: (0.0, 0.0, 0.0) for key in VALUES if key[1] == "not"})
    told = " ".join(run("claim", "check").stdout.split())
    assert "max_length on not: none of these trainings" in told
    assert "max_length on reverse" not in told


def test_a_study_that_lacked_its_claims_when_it_ran_names_the_command_for_its_file(run, tiny, golden):
    record = {"text": Path(tiny).read_text(encoding="utf-8"), "overrides": [], "path": tiny}
    Store("results").records.save("tiny", record)
    golden(run("claim", "check", "tiny").stderr)


def test_a_study_without_claims_and_a_claim_that_cannot_be_read_are_reported(run, tiny, golden):
    result = run("claim", "check", tiny)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
    with Path(tiny).open("a", encoding="utf-8") as file:
        file.write('\n[[claim]]\nname = "x"\nholds = "los[task=not] > 3"\n')
    result = run("claim", "check", tiny)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


@pytest.mark.parametrize(
    ("study", "claims"),
    [
        ("algorithmic", 16),
        ("algorithmic-small", 15),
        ("language-modelling-small", 7),
        ("language-modelling-dropout", 3),
        ("persistent-vectors-small", 2),
        ("attention-variants-small", 5),
        ("all-attention-characters", 3),
        ("all-attention-words-small", 1),
    ],
)
def test_the_claims_of_the_papers_can_be_checked_before_anything_has_run(run, study, claims):
    result = run("claim", "check", study)
    verdicts = re.findall(r"^  (not run|confirmed|refuted)", result.stdout, re.MULTILINE)
    assert len(verdicts) == claims
    assert result.exit_code == 1, "though some claims only count parameters"
    assert result.stderr.startswith(f"no trial of {study} ")
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "study",
    [
        "algorithmic-small",
        pytest.param("attention-variants-small", marks=pytest.mark.heavy),
        pytest.param("language-modelling-small", marks=pytest.mark.heavy),
        "memory-degradation",
        pytest.param("persistent-vectors-small", marks=pytest.mark.heavy),
    ],
)
def test_the_claims_of_the_stored_results_fit_eighty_columns_with_every_name_whole(run, study):
    results = Path(__file__).parents[3] / "studies" / "results"
    lines = run("claim", "check", study, "--results", str(results)).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    words = {word for line in lines for word in re.findall(r"reverse_copy\w*", line)}
    assert words <= {"reverse_copy", "reverse_copy_repeats", "reverse_copy_bigrams"}
    assert not any("{" in line for line in lines if re.match(" +(confirmed|refuted|undecided) ", line))


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0001, "p < .001"), (0.035, "p = .035"), (0.0497, "p < .05"), (0.05, "p = .05"), (1, "p = 1")],
)
def test_a_p_just_below_the_usual_level_is_not_rounded_to_that_level(p, text):
    assert format_p(p) == text


def test_a_claim_that_was_changed_or_added_after_results_is_named(run, tmp_path):
    file = tmp_path / "mine.toml"
    factors = {"mixer": ["conv(k=5)", "conv(k=3)"], "task": ["not"], "seed": [0, 1]}

    def write(*claims):
        text = study_text(study={"name": "mine"}, factors=factors, claim=list(claims))
        file.write_text(text, encoding="utf-8")

    def notes(*claims):
        write(*claims)
        shown = " ".join(run("claim", "check", str(file)).stdout.split())
        return shown.partition("Stated ")[2]

    claim = {"name": "more taps are better", "holds": "loss[mixer=conv(k=5)] < loss[mixer=conv(k=3)]"}
    write(claim)
    assert run("study", "run", str(file), "--local").exit_code == 0
    same = claim | {"name": "they are better", "source": "page 3"}
    assert all(
        "before the first of 4 trials of these cells · uses all 4" in notes(each) for each in (claim, same)
    )
    turned = claim | {"holds": "loss[mixer=conv(k=5)] > loss[mixer=conv(k=3)]"}
    assert "after results: more taps are better (after 4), of 4 trials" in notes(turned)
    added = {"name": "it is near", "holds": "loss[mixer=conv(k=5)] < loss[mixer=conv(k=3)] + 1"}
    assert "before the first of 4 trials of these cells, but for it is near (after 4) ·" in notes(
        claim, added
    )
    assert run("study", "run", str(file), "--local").exit_code == 0  # a later run does not hide it
    assert "before the first of 4 trials of these cells, but for it is near (after 4) ·" in notes(
        claim, added
    )
    Path("results/studies/mine.json").unlink()
    shown = " ".join(run("claim", "check", str(file)).stdout.split())
    assert "No run has recorded when these claims were stated" in shown, "as in a clone"


def test_results_of_another_task_make_no_claim_late(run, tmp_path):
    file = tmp_path / "mine.toml"

    def notes(task):
        factors = {"mixer": ["conv(k=5)", "conv(k=3)"], "seed": [0, 1]}
        claim = {"name": f"{task} needs taps", "holds": "loss[mixer=conv(k=5)] < loss[mixer=conv(k=3)]"}
        tables = {"study": {"name": "mine"}, "task": {"name": task}, "claim": [claim]}
        file.write_text(study_text(factors=factors, **tables), encoding="utf-8")
        shown = " ".join(run("claim", "check", str(file)).stdout.split())
        return shown.partition("Stated ")[2]

    notes("not")
    assert run("study", "run", str(file), "--local").exit_code == 0
    assert notes("copy") == ""
    assert run("study", "run", str(file), "--local").exit_code == 0
    assert notes("copy").startswith("before the first of 4 trials of these cells · uses all 4")


def test_claims_that_are_new_in_a_copied_study_are_named_as_late(run, tmp_path):
    first, copy = tmp_path / "first.toml", tmp_path / "copy.toml"
    factors = {"mixer": ["conv(k=5)", "conv(k=3)"], "task": ["not"], "seed": [0, 1]}
    old = {"name": "more taps are better", "holds": "loss[mixer=conv(k=5)] < loss[mixer=conv(k=3)]"}
    new = {"name": "it is near", "holds": "loss[mixer=conv(k=5)] < loss[mixer=conv(k=3)] + 1"}

    def write(file, *claims):
        text = study_text(study={"name": file.stem}, factors=factors, claim=list(claims))
        file.write_text(text, encoding="utf-8")

    def notes():
        shown = " ".join(run("claim", "check", str(copy)).stdout.split())
        return shown.partition("Stated ")[2]

    write(first, old)
    assert run("study", "run", str(first), "--local").exit_code == 0
    write(copy, old, new)
    assert "before the first of 4 trials of these cells, but for it is near (after 4) ·" in notes()
    assert run("study", "run", str(copy), "--local").exit_code == 0  # it reuses all trials
    assert "but for it is near (after 4) ·" in notes()
    third = new | {"name": "it is very near", "level": 0.9}
    write(copy, old, new, third)
    assert "but for it is near (after 4); it is very near (after 4) ·" in notes()


def test_more_seeds_than_max_seeds_are_named_as_such(run, claiming):
    claiming()
    assert "max_seeds" not in run("claim", "check").stdout
    path = Path("tiny.toml")
    text = path.read_text(encoding="utf-8").replace("[study]\n", "[study]\nmax_seeds = 8\n", 1)
    path.write_text(text, encoding="utf-8")
    told = " ".join(run("claim", "check", str(path)).stdout.split())
    assert "up to 100, also if these are more than max_seeds = 8." in told
