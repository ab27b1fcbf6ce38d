"""`study run --until-decided`: seeds are added while claims are undecided, and limits are reported."""

import json
import re
from pathlib import Path
from statistics import mean, stdev

import pytest

from activemem import Store, StudyResults, open_study, run_study

from ...study_texts import study_text

CLAIM = '\n[[claim]]\nname = "longer kernels go further"\nholds = "loss[mixer=conv(k=3)] {}"\n'


@pytest.fixture
def study(tmp_path):
    """Write a study with one cell, three seeds, two possible more, and a claim."""

    def write(holds="> 0.5", header="max_seeds = 5\n", claim=CLAIM):
        text = study_text(factors={"mixer": ["conv(k=3)"], "task": ["reverse"], "seed": [0, 1, 2]})
        path = tmp_path / "tiny.toml"
        path.write_text(
            text.replace("[study]\n", f"[study]\n{header}") + claim.format(holds), encoding="utf-8"
        )
        return str(path)

    return write


def seeds():
    return sorted(Store("results").trials()["seed"])


def test_seeds_are_added_until_the_claim_is_decided_or_no_more_may_be(run, study):
    assert run("study", "run", study(), "--local").exit_code == 0
    ends = Store("results").trials({"loss"})["metrics"]
    losses = [each["value"] for row in ends for each in row if each["name"] == "loss"]
    path = study(f"> {mean(losses) - 1.2 * stdev(losses)}")  # t = 2.1, which three seeds do not decide
    found = run("study", "run", path, "--local", "--until-decided")
    assert found.exit_code == 0
    assert "longer kernels go further: 2 trials " in found.stderr
    assert seeds() == [0, 1, 2, 3, 4]
    (told,) = (line for line in found.stderr.splitlines() if line.startswith("tiny: claims "))
    assert "added 2 trials" in told
    status = "tiny: 3 of 3 trials done · 0 left · further seeds: 2 done · "
    again = run("study", "run", path, "--local", "--until-decided")
    for stderr, ran in ((found.stderr, 2), (again.stderr, 0)):
        assert f"{status}{ran} trials ended in " in stderr
    assert "added 0 trials" in again.stderr
    assert run("study", "forget", "tiny", "--only", "seed=4").exit_code == 0
    assert seeds() == [0, 1, 2, 3]


def test_a_continued_run_counts_the_trials_of_seeds_that_were_added_before(run, study):
    assert run("study", "run", study(), "--local").exit_code == 0
    ends = Store("results").trials({"loss"})["metrics"]
    losses = [each["value"] for row in ends for each in row if each["name"] == "loss"]
    path = study(f"> {mean(losses) - 1.2 * stdev(losses)}")
    results = open_study(path)
    first, second = results.next_seeds().trials
    run_study(results.study.with_trials([first]), results.store)  # as a run that was stopped then
    growing = StudyResults(results.study.with_trials([first, second]), results.store)
    assert growing.status.summary() == "3 of 3 trials done · 1 left · further seeds: 1 done"
    assert "5/5 " in run("study", "run", path, "--local", "--until-decided").stderr


def test_the_table_at_the_end_counts_the_added_seeds(run, study):
    assert run("study", "run", study(), "--local").exit_code == 0
    ends = Store("results").trials({"loss"})["metrics"]
    losses = [each["value"] for row in ends for each in row if each["name"] == "loss"]
    path = study(f"> {mean(losses) - 1.2 * stdev(losses)}")
    table = '\n[[table]]\nname = "t"\nrows = "mixer"\nvalue = "loss"\n'
    Path(path).write_text(Path(path).read_text(encoding="utf-8") + table, encoding="utf-8")
    for options in (("--until-decided",), ()):  # a later run says it again
        told = words_of(run("study", "run", path, "--local", *options))
        assert "mean ± s.d. of 5 seeds" in told


def words_of(found):
    """Return what a command printed as one line."""
    return " ".join((found.stdout + found.stderr).split())


def test_a_max_seeds_that_is_set_after_results_says_once_what_it_changes(run, study):
    told = "are now stricter"
    assert run("study", "run", study(header=""), "--local").exit_code == 0
    path = study()
    assert told in words_of(run("claim", "check", path))
    asked = ("plan", "run", "run", "plan")  # the first run records the new value
    assert [told in words_of(run("study", each, path)) for each in asked] == [True, True, False, False]
    lower = words_of(run("study", "plan", study(header="max_seeds = 4\n")))
    assert re.search("max_seeds was 5 .* are now corrected", lower)
    gone = words_of(run("study", "plan", study(header="")))
    assert re.search("max_seeds was 5 .* are no longer", gone)


def test_seeds_that_are_added_by_hand_after_results_are_noted_below_the_claims(run, study):
    def write(seeds, **keys):
        path = Path(study(header="", **keys))
        text = path.read_text(encoding="utf-8").replace("seed = [0, 1, 2]", f"seed = {seeds}")
        path.write_text(text, encoding="utf-8")
        return str(path)

    def told(*words):
        return "3 seeds before" in words_of(run(*words))

    assert run("study", "run", write([0, 1, 2]), "--local").exit_code == 0
    assert not told("claim", "check", "tiny")
    path = write([0, 1, 2, 3])
    assert told("study", "plan", path)  # before the new seed is trained
    assert told("study", "run", path, "--local")
    assert told("study", "run", path, "--local")
    assert told("claim", "check", "tiny")
    assert "set seed = [0, 1, 2] and max_seeds = 4." in words_of(run("claim", "check", path))
    assert run("report", "build", "tiny").exit_code == 0
    assert "3 seeds before" in Path("tiny.html").read_text(encoding="utf-8")
    assert not told("claim", "check", write([0, 1, 2]))


def test_seeds_that_are_added_together_with_a_test_length_are_noted(run, study):
    path = Path(study(header=""))
    before = path.read_text(encoding="utf-8")
    assert run("study", "run", str(path), "--local").exit_code == 0
    both = before.replace("seed = [0, 1, 2]", "seed = [0, 1, 2, 3]").replace(
        "[task]\n", "[task]\ntest_lengths = [5]\n"
    )
    path.write_text(both, encoding="utf-8")
    assert "3 seeds before" in words_of(run("study", "plan", str(path)))
    path.write_text(both.replace("[train]\n", "[train]\nlr = 0.5\n"), encoding="utf-8")
    assert "3 seeds before" not in words_of(
        run("study", "plan", str(path))
    )  # other trainings have no results


@pytest.mark.parametrize(
    ("header", "advice"), [("max_seeds = 6\n", "keep max_seeds = 6"), ("", "max_seeds = 4")]
)
def test_the_advice_on_seeds_that_are_added_by_hand_keeps_max_seeds(run, study, header, advice):
    def write(seeds, header):
        path = Path(study(header=header))
        text = path.read_text(encoding="utf-8").replace("seed = [0, 1, 2]", f"seed = {seeds}")
        path.write_text(text, encoding="utf-8")
        return str(path)

    assert run("study", "run", write([0, 1, 2], header), "--local").exit_code == 0
    path = write([0, 1, 2, 3], header)
    assert run("study", "run", path, "--local").exit_code == 0
    told = words_of(run("claim", "check", path))
    assert f"set seed = [0, 1, 2] and {advice}." in told
    assert ("a single look" in told) == (not header)
    followed = write([0, 1, 2], f"{advice.removeprefix('keep ')}\n")
    for words in (("study", "plan"), ("claim", "check")):
        assert "valid only if" not in words_of(run(*words, followed))


def test_seeds_are_not_noted_as_added_if_no_result_was_decisive_before(run, study):
    def check(seeds):
        path = Path(study(header=""))
        text = path.read_text(encoding="utf-8").replace("seed = [0, 1, 2]", f"seed = {seeds}")
        path.write_text(text, encoding="utf-8")
        assert run("study", "run", str(path), "--local").exit_code == 0
        return words_of(run("claim", "check", "tiny"))

    assert "before it got" not in check([0])
    assert "before it got" not in check([0, 1, 2])  # one seed decides nothing


def test_seeds_that_are_left_out_after_results_are_noted(run, study):
    def write(seeds):
        path = Path(study(header=""))
        text = path.read_text(encoding="utf-8").replace("seed = [0, 1, 2]", f"seed = {seeds}")
        path.write_text(text, encoding="utf-8")
        return str(path)

    assert run("study", "run", write([0, 1, 2]), "--local").exit_code == 0
    assert json.loads(run("claim", "check", "tiny", "--json").stdout)["changes"] == []
    path, told = write([0, 2]), "leaves out 1 (seed 1 of tiny)"
    assert told in words_of(run("claim", "check", path))
    evidence = json.loads(run("claim", "check", path, "--json").stdout)["evidence"]
    assert [each["seed"] for each in evidence["trials"] if each["trial"] not in evidence["used"]] == [1]
    table = '\n[[table]]\nname = "ends"\nrows = "mixer"\nvalue = "loss"\n'
    Path(path).write_text(Path(path).read_text(encoding="utf-8") + table, encoding="utf-8")
    assert "Left out: 1 stored trial of seed 1, which" in words_of(run("table", "render", path))
    copy = Path("copy.toml")
    copy.write_text(Path(path).read_text(encoding="utf-8").replace('"tiny"', '"copy"'), encoding="utf-8")
    assert told in words_of(run("claim", "check", str(copy)))
    assert "seed 1, trained for the study tiny." in words_of(run("table", "render", str(copy)))
    Path("results/studies/tiny.json").write_text("{", encoding="utf-8")
    run("study", "status", "tiny")  # moves the damaged record away
    assert "changes of seeds and claims before it are unknown" in words_of(run("claim", "check", path))


def test_a_left_out_seed_that_max_seeds_may_add_is_noted(run, study):
    path = Path(study(header="max_seeds = 4\n"))
    before = path.read_text(encoding="utf-8")
    assert run("study", "run", str(path), "--local").exit_code == 0
    told = "the results of seed 2 count, since max_seeds = 4"
    assert told not in words_of(run("claim", "check", str(path), "--set", "factors.seed=[0, 1]"))
    path.write_text(before.replace("seed = [0, 1, 2]", "seed = [0, 1]"), encoding="utf-8")
    assert told in words_of(run("claim", "check", str(path)))
    assert told in words_of(run("study", "run", str(path), "--local"))
    assert told in words_of(run("claim", "check", str(path)))  # a later run has not removed it
    path.write_text(before, encoding="utf-8")
    assert told not in words_of(run("claim", "check", str(path)))


def test_a_max_seeds_for_fewer_seeds_than_had_results_is_no_advice(run, study):
    path = Path(study(header=""))
    text = path.read_text(encoding="utf-8")
    assert run("study", "run", str(path), "--local").exit_code == 0
    fewer = text.replace("seed = [0, 1, 2]", "seed = [0, 1]").replace("[study]\n", "[study]\nmax_seeds = 3\n")
    path.write_text(fewer, encoding="utf-8")
    assert "valid only if you have not seen a result yet" in words_of(run("claim", "check", str(path)))


def test_seeds_that_an_override_left_out_are_those_of_the_file(run, study):
    path = study(header="")
    assert run("study", "run", path, "--local").exit_code == 0
    part = ("--set", "factors.seed=[0, 1]")
    assert run("study", "run", path, "--local", *part).exit_code == 0
    for words in (("claim", "check", path), ("study", "plan", path), ("study", "plan", path, *part)):
        told = words_of(run(*words))
        assert "before it got" not in told
        assert "leaves out" not in told


def test_a_max_seeds_without_anything_to_decide_is_reported(run, study):
    told = "max_seeds = 5 changes nothing"
    found = words_of(run("study", "plan", study(claim="")))
    assert told in found
    assert "are tested at" not in found
    assert told in words_of(run("study", "run", study(claim=""), "--local", "--max-trials", "1"))


def test_a_budget_bounds_what_added_seeds_train(run, study):
    path = study("> 1.9")
    assert run("study", "run", path, "--local", "--until-decided", "--budget", "0s").exit_code == 0
    assert seeds() == [0, 1, 2]


def test_a_run_that_adds_nothing_says_why(run, study):
    assert run("study", "run", study(), "--local").exit_code == 0
    ends = Store("results").trials({"loss"})["metrics"]
    losses = [each["value"] for row in ends for each in row if each["name"] == "loss"]
    options = ("--local", "--until-decided", "--budget", "0s")
    path = study(f"> {mean(losses) - 1.2 * stdev(losses)}")  # undecided
    assert "budget is spent" in run("study", "run", path, *options).stderr
    path = study(f"> {mean(losses) - 100 * stdev(losses)}")  # confirmed
    assert "no seeds" not in run("study", "run", path, *options).stderr


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ({"header": ""}, ()),
        ({"claim": ""}, ()),
        ({"header": "max_seeds = 3\n"}, ()),
        ({}, ("--shard", "1/2")),
        ({}, ("--budget", "soon")),
    ],
)
def test_impossible_requests_are_reported_before_anything_runs(run, study, written, options, golden):
    found = run("study", "run", study(**written), "--local", "--until-decided", *options)
    assert found.exit_code == 2
    golden(" ".join(found.stderr.replace("│", " ").split()))


def test_a_budget_without_added_seeds_is_reported(run, study):
    found = run("study", "run", study(), "--local", "--budget", "1h")
    assert found.exit_code == 2
    assert "--budget needs --until-decided" in " ".join(found.stderr.replace("│", " ").split())
