import subprocess
from pathlib import Path

import pytest

import activemem
from activemem import load_study
from activemem.storage import Store

from ...study_texts import study_text
from ..store_factories import make_partial_store, store_outcome

CSV_LOSSES = """\
row,column,value,spread,n,low,high,table,group,metric,status,spread_is,difference,difference_half_width,\
is_significant,p,best,tie,picked,published,unit,note,origin
"sa(heads=1, head_width=4)",not,0.5,0.0,2,"""


def test_the_last_study_is_rendered_in_full_without_a_name(run, tiny, golden):
    make_partial_store(tiny)
    result = run("table", "render")
    assert (result.exit_code, result.stderr) == (0, "")
    golden(result.stdout)


def test_one_table_in_the_format_that_is_asked_for(run, tiny):
    make_partial_store(tiny)
    result = run("table", "render", "tiny", "--table", "losses", "--format", "csv")
    assert result.stdout.startswith(CSV_LOSSES)
    assert len(result.stdout.splitlines()) == 5


@pytest.mark.parametrize("form", ["latex", "siunitx"])
@pytest.mark.parametrize(
    ("caption", "is_beyond"),
    [
        ("日本語 한국", True),
        ("Точность", True),
        ("שגיאה ★", True),
        ("é Œ ﬁ ² α → €", False),
        ("e\u0301", False),
    ],
)
def test_letters_beyond_latin_stay_in_latex_and_the_programs_that_print_them_are_named(
    run, tiny, form, caption, is_beyond
):
    make_partial_store(tiny)
    text = Path(tiny).read_text(encoding="utf-8").replace("[[table]]", f'[[table]]\ncaption = "{caption}"', 1)
    Path(tiny).write_text(text, encoding="utf-8")
    result = run("table", "render", tiny, "--table", "table4", "--format", form)
    head = result.stdout.partition("\\begin")[0]
    if not is_beyond:
        assert (result.stderr, "fontenc" in head, "LuaLaTeX" in head) == ("", True, False)
        return
    assert f"\\caption{{{caption}" in result.stdout
    needs = "needs XeLaTeX or LuaLaTeX, and a font that has "
    assert f"% {needs}" in head
    assert "fontspec" in head
    assert result.stderr.startswith(f"this LaTeX code {needs}")
    assert {*result.stderr.strip().removeprefix(f"this LaTeX code {needs}")} == {*caption} - {" "}


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("rich", "Longest length"),
        ("markdown", "Longest length"),
        ("latex", "% \\usepackage"),
        ("html", '<figure class="activemem-table" id="table4">'),
        ("csv", "row,column,value,"),
    ],
)
def test_every_format_has_a_name_on_the_command_line_and_in_the_settings(run, tiny, monkeypatch, form, start):
    make_partial_store(tiny)
    by_option = run("table", "render", "--table", "table4", "--format", form)
    monkeypatch.setenv("ACTIVEMEM_FORMAT", form)
    by_setting = run("table", "render", "--table", "table4")
    assert by_option.stdout.startswith(start)
    assert by_option.stdout == by_setting.stdout


def test_published_numbers_are_shown_next_to_ours_where_the_paper_has_them(run):
    result = run("table", "render", "algorithmic", "--published")
    assert result.exit_code == 0
    assert "Below: published, active-memory-transformer table4." in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_papers_tables_are_printed_without_our_numbers(run):
    result = run("table", "render", "--paper", "active-memory-transformer", "--published")
    assert (result.exit_code, result.stderr) == (0, "")
    first, _, second = result.stdout.partition("\n\nPublished: ")
    assert first.startswith(
        "Published: active-memory-transformer table1 (nats a position, lower is better).\n"
    )
    assert second.startswith("active-memory-transformer table4 (tokens, higher is better).\n\n")
    assert "\n  Mean of 3 runs.\n" in second


def test_how_numbers_were_tested_is_said_on_request(run):
    table = ("table", "render", "ablation-small", "--results", f"{activemem.__path__[0]}/studies/results")
    short, full = run(*table).stdout, run(*table, "--notes").stdout
    assert "†: p < 0.05." in short
    assert short.endswith("\n  Notes on the numbers: --notes\n")
    assert "Holm" not in short
    assert "Holm over the" in full
    assert len(short.split("\n\n")[0]) < 200


def test_a_papers_table_shows_our_numbers_once_the_study_has_run(run, tiny):
    make_partial_store(tiny)
    result = run("table", "render", "--paper", "active-memory-transformer", "--table", "table4")
    assert result.exit_code == 0
    assert "  conv(k=3)                  *9.5 ± 0.7*    diverged a,b" in result.stdout
    assert "  persistent_conv" in result.stdout
    assert "  study tiny · 7 of 8 trials" in result.stdout


def test_a_trial_that_has_begun_is_not_called_missing(run, tiny):
    store = make_partial_store(tiny)
    left = next(trial for trial in load_study(tiny).trials if trial.id not in store.latest_attempts())
    store.files.checkpoint_dir(left.id).mkdir(parents=True)
    (store.files.checkpoint_dir(left.id) / "state.pt").touch()
    result = run("table", "render", "--table", "table4")
    assert "  a   1 of 2 seeds begun" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("tiny", "--paper", "all-attention"),
        ("--paper", "all-attention", "--table", "4"),
        ("algorithmic", "--table", "table5"),
        ("nothing.toml",),
        ("nothing",),
    ],
)
def test_requests_that_cannot_be_rendered_are_reported(run, arguments, golden):
    result = run("table", "render", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_study_without_tables_is_reported(run, tiny, golden):
    text, _, _ = Path(tiny).read_text(encoding="utf-8").partition("[[table]]")
    Path("bare.toml").write_text(text, encoding="utf-8")
    result = run("table", "render", "bare.toml")
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_study_that_lacked_its_tables_when_it_ran_names_the_command_for_its_file(run, tiny, golden):
    text, _, _ = Path(tiny).read_text(encoding="utf-8").partition("[[table]]")
    Store("results").records.save("tiny", {"text": text, "overrides": [], "path": "my tables.toml"})
    golden(run("table", "render", "tiny").stderr)


def test_an_incomplete_table_points_to_trials_with_other_settings(run, tiny, golden):
    text, shorter = Path(tiny).read_text(encoding="utf-8"), load_study(tiny, ["train.epochs=1"])
    claim = '[[claim]]\nname = "x"\nholds = "loss[task=not, mixer=sa] < 1"\n'
    curve = '[[curve]]\nname = "x"\nkind = "bar"\nx = "mixer"\nvalue = "loss"\nselect = { task = "not" }\n'
    Path(tiny).write_text(f"{text}\n{claim}\n{curve}", encoding="utf-8")
    store = Store("results")
    for trial in (*shorter.trials, load_study(tiny).trials[0]):
        store_outcome(trial, store)
    store.records.save("tiny", {"text": text, "overrides": ["train.epochs=1"], "path": tiny})
    more = "\nmore on versions: activemem study status tiny.toml --versions\n"
    for kind, verb in (("table", "render"), ("claim", "check"), ("curve", "render")):
        assert run(kind, verb, tiny).stderr.endswith(more)
    assert (
        "\nthe study as it last ran: activemem table render tiny\n"
        in run("study", "status", tiny, "--versions").stdout
    )
    golden(run("study", "plan", tiny).stderr)
    assert run("table", "render", "tiny").stderr == ""  # nothing is missing
    store.records.save("tiny", {"text": text, "overrides": ["train.epochs=3"], "path": tiny})
    golden(run("table", "render", "tiny").stderr)
    assert run("report", "build", "tiny").stderr.endswith("activemem study status tiny --versions\n")


def test_a_store_that_is_copied_without_overwriting_adds_the_trials_of_a_co_author(run, tiny):
    text = Path(tiny).read_text(encoding="utf-8")
    for folder, overrides, seed in (("results", [], 0), ("hers", ["factors.seed=[1]"], 1)):
        store = Store(folder)
        for trial in load_study(tiny, overrides).trials:
            if trial.seed == seed:
                store_outcome(trial, store)
        store.records.save("tiny", {"text": text, "overrides": overrides, "path": tiny})
    subprocess.run(
        ["cp", "-rn", "hers/.", "results/"], check=False
    )  # 1 in some versions, for what is skipped
    assert "8 of 8 trials done" in run("study", "status", "tiny").stdout
    assert run("table", "render", "tiny").stderr == ""
    Path(tiny).write_text(text.replace("seed = [0, 1]", "seed = [0]"), encoding="utf-8")
    told = run("study", "status", tiny).stderr
    assert "are not counted (they would count if the study had their seeds: 1)\n" in told


def test_a_file_whose_data_are_missing_names_the_command_for_its_last_run(run, tmp_path, golden):
    rows = [f"{'a' if number % 3 else 'b'} {number},{number % 2}" for number in range(100)]
    Path("rows.csv").write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    table = {"name": "t", "rows": "mixer", "value": "test_accuracy"}
    text = study_text(
        task={"name": "sequence_classification", "corpus": {"path": "rows.csv"}, "tokens": "characters"},
        model={"recipe": "2 * ({mixer} >> ff(8)) >> mean_pool"},
        train={"curriculum": None},
        factors={"mixer": ["conv(k=3)", "conv(k=5)"], "seed": [0]},
        table=[table],
    )
    path = Path("tiny.toml")
    path.write_text(text, encoding="utf-8")
    study, store = load_study(path), Store("results")
    for trial in study.trials:
        store_outcome(trial, store)
    facts = study.own_corpus.to_dict()
    store.records.save("tiny", {"text": text, "overrides": [], "path": str(path), "own_corpus": facts})
    Path("rows.csv").unlink()
    golden(run("table", "render", "tiny.toml").stderr)
    assert run("table", "render", "tiny").exit_code == 0


def test_trials_from_before_a_change_of_their_results_are_not_counted(run, tiny):
    task = {"name": "mqar", "vocab": 64, "length": 32, "tests": [[64, 8]]}
    train, factors = {"curriculum": None}, {"mixer": ["sa", "conv(k=3)"], "seed": [0, 1]}
    text = study_text(task=task, train=train, factors=factors)
    Path(tiny).write_text(text, encoding="utf-8")
    store, (first, *others) = Store("results"), load_study(tiny).trials
    store_outcome(first, store)
    for number, other in enumerate(others):
        store_outcome(other, store, as_id=f"{number:016}")
    told = run("study", "status", tiny)
    assert "1 of 4 trials done" in told.stdout
    assert told.stderr.startswith(
        "3 stored trials of other versions of tiny are not counted (from before a change of activemem"
    )
    Path(tiny).write_text(text.replace("seed = [0, 1]", "seed = [0]"), encoding="utf-8")
    assert run("study", "status", tiny).stderr == told.stderr
    assert "3 trials would be removed" in run("study", "forget", tiny, "--stale", "--dry-run").stdout
