import json
from pathlib import Path

import pytest

from activemem.storage import Store

from ..store_factories import make_partial_store

CURVES = """
[[curve]]
name = "reached"
kind = "bar"
value = "max_length"
x = "mixer"
panels = "task"

[[curve]]
name = "fall"
kind = "line"
value = "loss"
x = "epoch"
series = "mixer"
select.task = "not"
"""


@pytest.fixture
def drawn(tiny):
    """Return the tiny study with two figures, partly run."""
    path = Path(tiny)
    path.write_text(path.read_text(encoding="utf-8") + CURVES, encoding="utf-8")
    make_partial_store(tiny)
    return tiny


def test_every_figure_of_the_last_study_is_drawn_here_and_named(run, drawn):
    result = run("curve", "render")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "tiny-reached.svg\ntiny-fall.svg\n"
    assert Path("tiny-reached.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "name", "start"),
    [
        (("--out", "one.png"), "one.png", b"\x89PNG"),
        (("--out", "one.pdf"), "one.pdf", b"%PDF"),
        (("--out", "ONE.SVG"), "ONE.SVG", b"<?xml"),
        (("--out", "deep/one", "--format", "svg"), "deep/one/tiny-fall.svg", b"<?xml"),
        (("--out", "figures", "--format", "png"), "figures/tiny-fall.png", b"\x89PNG"),
        (("--out", "figures"), "figures/tiny-fall.svg", b"<?xml"),
        (("--out", "v1.2/"), "v1.2/tiny-fall.svg", b"<?xml"),
        (("--out", "folder/"), "folder/tiny-fall.svg", b"<?xml"),
        (("--out", "folder/", "--format", "png"), "folder/tiny-fall.png", b"\x89PNG"),
    ],
)
def test_a_file_is_named_and_its_name_says_what_it_is(run, drawn, arguments, name, start):
    result = run("curve", "render", "tiny", "--curve", "fall", *arguments)
    assert (result.exit_code, result.stdout) == (0, f"{name}\n")
    assert Path(name).read_bytes().startswith(start)


def test_the_numbers_of_a_figure_are_available_as_data(run, drawn):
    reached, fall = json.loads(run("curve", "render", "tiny", "--json").stdout)["curves"]
    assert [panel["title"] for panel in reached["panels"]] == ["not", "reverse"]
    assert [bar["text"] for bar in reached["panels"][1]["content"]["bars"]] == ["7.5", "diverged"]
    assert [(point["x"], point["y"]) for point in fall["panels"][0]["content"]["lines"][0]["points"]] == [
        (2.0, 0.5)
    ]
    assert not list(Path().glob("*.svg"))


def test_a_path_without_an_ending_is_a_folder_for_many_figures_too(run, drawn):
    result = run("curve", "render", "tiny", "--out", "figures")
    assert result.stdout == "figures/tiny-reached.svg\nfigures/tiny-fall.svg\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--curve", "fell"),
        ("--out", "one.svg"),
        ("--curve", "fall", "--out", "v1.2"),
        ("--curve", "fall", "--out", "a.png", "--format", "svg"),
        ("--curve", "fall", "--out", "one.gif"),
        ("--curve", "fall", "--out", "tiny.toml/figures"),
        ("--curve", "fall", "--out", "tiny-file"),
    ],
)
def test_requests_that_cannot_be_drawn_are_reported(run, drawn, arguments, golden):
    Path("tiny-file").write_text("not a folder", encoding="utf-8")
    result = run("curve", "render", "tiny", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_study_without_figures_says_so(run, tiny):
    result = run("curve", "render", tiny)
    assert (result.exit_code, "no [[curve]]" in result.stderr) == (2, True)


def test_a_study_that_lacked_its_curves_when_it_ran_names_the_command_for_its_file(run, tiny, golden):
    text, _, _ = Path(tiny).read_text(encoding="utf-8").partition("[[table]]")
    Store("results").records.save("tiny", {"text": text, "overrides": [], "path": "my curves.toml"})
    golden(run("curve", "render", "tiny").stderr)
