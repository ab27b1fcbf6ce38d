"""Foreign texts cannot control terminals or pages: control characters are replaced."""

from pathlib import Path

import pytest

HOSTILE = "\\u001b]0;owned\\u0007 \\u202egnp.exe\\u009b2J"
"""In TOML: a terminal title, a bell, a change of text direction, and an erased screen."""


@pytest.fixture
def hostile(tiny):
    """Write a study with hostile texts, and store one of its trials."""
    text = Path(tiny).read_text(encoding="utf-8")
    text = text.replace("A study of seconds", HOSTILE).replace('"table4"', f'"table4"\ncaption = "{HOSTILE}"')
    holds = "all(max_length[mixer=m, task=t] < 37 for m in mixer for t in task)"
    text += f'[[claim]]\nname = "one"\nholds = "{holds}"\nsource = "{HOSTILE}"\n'
    Path("hostile.toml").write_text(text, encoding="utf-8")
    return "hostile.toml"


def is_harmless(text):
    return all(sign == "\n" or sign.isprintable() for sign in text)


@pytest.mark.heavy
def test_no_command_lets_the_texts_of_a_study_reach_a_terminal_as_they_are(run, hostile):
    where = ("study", "run", hostile, "--local", "--max-trials", "1", "--set", "train.epochs=1")
    said = [run(*where, "--set", "train.steps_per_epoch=1")]
    for command in ("study show", "study plan", "study status", "study list", "claim check", "table render"):
        words = command.split() + ([hostile] if command != "study list" else [])
        said += [run(*words), run(*words, "--json")]
    said += [
        run("table", "render", hostile, "--format", form) for form in ("csv", "html", "latex", "markdown")
    ]
    query = "SELECT *, chr(27) || '[31m' AS red FROM trials"
    said += [run("study", "query", query, "--format", form) for form in ("rich", "csv")]
    assert [text for each in said for text in (each.stdout, each.stderr) if not is_harmless(text)] == []
    assert sum("gnp.exe" in each.stdout for each in said) > 6, [each.stderr for each in said]


def test_json_says_what_was_there_in_escapes(run, hostile):
    run("study", "run", hostile, "--local", "--max-trials", "1", "--set", "train.epochs=1")
    status = run("study", "status", hostile, "--json").stdout
    assert HOSTILE in status


def test_a_page_and_a_figure_have_no_control_character(run, hostile):
    run("study", "run", hostile, "--local", "--max-trials", "1")
    assert run("report", "build", hostile, "--out", "page.html").exit_code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert is_harmless(page)
    assert "&#8238;" not in page


@pytest.mark.parametrize("key", ["\x1b[31m", "\u202e"])
def test_unknown_keys_and_names_are_reported_without_control_characters(run, tiny, key):
    escaped = f'"\\u{ord(key[0]):04x}{key[1:]}"'
    told = [
        run("study", "plan", tiny, "--set", f"train.{escaped}=1"),
        run("study", "plan", tiny, "--set", f"[{key}"),
        run("study", "status", f"no{key}study"),
        run("recipe", "check", f"s{key}a"),
        run("study", "query", f"SELECT {key} FROM trials"),
    ]
    assert all(each.exit_code != 0 and is_harmless(each.stderr) for each in told)


@pytest.mark.parametrize("level", ["(" * 5000, "x" * 5000, "sa + " * 1500 + "sa", "日" * 3000])
def test_a_level_of_thousands_of_letters_fills_no_screen(run, tiny, level):
    claim = '[[claim]]\nname = "c"\nsource = "s"\nholds = "loss[mixer=other, task=not] < 1"\n'
    text = Path(tiny).read_text(encoding="utf-8").replace('"conv(k=3)"', f'"{level}"', 1)
    Path(tiny).write_text(f"{text}\n{claim}", encoding="utf-8")
    for words in (["plan"], ["status"], ["plan", "--set", f"train.epochs={level}"]):
        result = run("study", words[0], tiny, *words[1:])
        assert result.exit_code == 2 or words == ["status"]  # a status reads no claim
        assert max(map(len, result.stderr.splitlines())) < 1300
