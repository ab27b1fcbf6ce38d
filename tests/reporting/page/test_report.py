"""Structure and texts of reports; test_in_browser.py checks them in a browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from activemem import load_study
from activemem.reporting.page import leading_comment, report
from activemem.storage import Store, TrialRow

from ...studies.test_plan import keep
from ...study_texts import study_text
from ..conftest import made_row

NOTHING_YET = ["question", "tables", "design", "status", "recipes", "reproduce", "settings"]
EVERYTHING = [
    "question",
    "tables",
    "design",
    "status",
    "failures",
    "recipes",
    "provenance",
    "reproduce",
    "settings",
]


class Reader(HTMLParser):
    """The content of a page: tags with attributes, and text by section."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self._section = [], {}, ""
        self.open = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "section":
            self._section = dict(attributes)["aria-labelledby"]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts[self._section] = self.texts.get(self._section, "") + data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(everything, kept):
    return report(everything, kept)


@pytest.fixture(scope="module")
def read(page):
    return Reader(page)


def test_each_section_that_has_something_to_say_is_there_in_order(read):
    assert [each["aria-labelledby"] for each in read.all("section")] == EVERYTHING
    assert [each["href"] for each in read.all("a")] == [f"#{name}" for name in EVERYTHING]


def test_empty_sections_are_left_out(everything, tmp_path):
    read = Reader(report(everything, Store(tmp_path)))
    assert [each["aria-labelledby"] for each in read.all("section")] == NOTHING_YET
    assert all(each["alt"].startswith("Diagram of ") for each in read.all("img"))


def test_the_same_store_gives_the_same_page(everything, kept, page):
    assert report(everything, kept) == page


def test_nothing_is_loaded_and_nothing_runs(page, read):
    names = {tag for tag, _ in read.tags}
    assert not names & {"script", "link", "iframe", "object", "form", "base"}
    assert all(each["src"].startswith("data:image/svg+xml;base64,") for each in read.all("img"))
    assert not re.search(r"url\((?!#)|@import|https?:", re.sub(r"base64,[A-Za-z0-9+/=]*", "", page))
    [policy] = [each["content"] for each in read.all("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none'; ")


def test_every_tag_is_closed_and_every_id_is_there_once(read):
    assert read.open == []
    ids = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_landmarks_headings_and_words_for_pictures_are_there(read):
    names = [tag for tag, _ in read.tags]
    assert [names.count(each) for each in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert all(each["alt"] for each in read.all("img"))
    boxes = [each for each in read.all("div") if "scroll" in each.get("class", "").split()]
    assert all(each["role"] == "region" and each["aria-label"] and each["tabindex"] == "0" for each in boxes)
    assert {each["scope"] for each in read.all("th")} == {"col", "colgroup", "row"}


def test_a_page_says_how_far_the_study_is(read):
    assert "19 of 36 trials done · 5 failed · 3 pruned · 9 left." in read.texts["status"]
    assert "Training took 40 s" in read.texts["status"]


def test_recipes_have_costs_and_a_diagram_each(read):
    assert "Every model is 2 * ({mixer} >> ff(8))." in read.texts["recipes"]
    assert "conv(k=20): 2 layers" not in read.texts["recipes"]
    assert "parametersMFLOPs/stepreachdonetime/trialpeak memory" in read.texts["recipes"]
    assert [each["alt"] for each in read.all("img")] == [
        "Diagram of 2 * (sa >> ff(8))",
        "Diagram of 2 * (conv(k=20) >> ff(8))",
        "Diagram of 2 * (persistent_conv(k=20) + sa >> ff(8))",
        "Diagram of 2 * (conv(k=3) + conv(k=5) >> ff(8))",
    ]


def test_figures_are_drawn_once_there_is_something_to_draw(everything, kept, tmp_path):
    spec = (
        '[[curve]]\nname = "by_task"\nkind = "bar"\nx = "task"\nvalue = "loss"\nselect = { mixer = "sa" }\n'
    )
    study = load_study(everything.document.text + spec)
    read = Reader(report(study, kept))
    assert [each["aria-labelledby"] for each in read.all("section")][1:3] == ["tables", "figures"]
    assert len(read.all("img")) == 4  # diagrams
    (image,) = read.all("svg")
    words = "Loss in training at the length reached, nats per token, by task; mixer sa."
    assert image["aria-label"].startswith(words)
    assert not [attributes for _, attributes in read.tags if "style" in attributes]
    assert report(study, kept) == report(study, kept)
    assert "figures" not in Reader(report(study, Store(tmp_path))).texts


def test_claims_have_their_verdicts_and_every_comparison(everything, kept, tmp_path):
    claim = """
[[claim]]
name = "convolution wins <on> sort"
source = "Table 4"
holds = "max_length[task=sort, mixer=conv(k=20)] > max_length[task=sort, mixer=sa] + 0.1"
"""
    study = load_study(everything.document.text + claim)
    read = Reader(report(study, kept))
    assert [each["aria-labelledby"] for each in read.all("section")][1:3] == ["claims", "tables"]
    text = " ".join(read.texts["claims"].split())
    assert "0 confirmed · 0 refuted · 1 undecided." in text
    numbers = "+15.0[−7.4, 37.4]n = 3, 6 would do"
    assert f"undecidedconvolution wins <on> sortTable 4tested for more than 0.1{numbers}" in text
    assert (
        "convolution wins <on> sort: max_length[task=sort, mixer=conv(k=20)] > max_length[task=sort" in text
    )
    assert "claims" not in Reader(report(study, Store(tmp_path))).texts


def test_failures_have_their_levels_and_reasons_whole_on_demand(read):
    text = read.texts["failures"]
    assert "3 × 90 % of <memory> & more _x_ | $y^2 {#1} ~ \\" in text
    assert "2 × disk is full at epoch 8" in text
    assert text.count("Traceback") == 3
    assert "sareverse22disk is full at epoch 8" in re.sub(
        r"\s", "", text.replace("disk is full", "diskisfull")
    ).replace("diskisfull", "disk is full").replace("atepoch8", " at epoch 8")


def test_settings_have_defaults_holes_and_the_levels_that_fill_them(read):
    text = " ".join(read.texts["settings"].split())
    assert "train.optimizer.betas[0.9, 0.999]" in text
    assert "model.recipe2 * ({mixer} >> ff(8))" in text
    assert "factors.seed[0, 1, 2]" in text


def test_settings_have_all_sources_that_the_study_gives(tmp_path):
    study = load_study("translation-small")
    rows = " ".join(Reader(report(study, Store(tmp_path))).texts["settings"].split())
    for each in study.source_sheet.settings:
        assert each.is_default or each.name in rows
        assert each.source is None or str(each.source) in rows
    for name in ("recipes.gru_attention", "factors.seed", "cells", "decode.sizes"):
        assert name in rows


def test_provenance_reports_programs_devices_and_dates(read):
    text = read.texts["provenance"]
    assert "a1b2c3d" in text
    assert "a1b2c3d4" not in text
    assert "H200 & 2 others" in text
    assert "2026-11-28 09:00 UTC" in text


def test_provenance_reports_changed_code_and_the_versions_below_it(everything, tmp_path):
    store, trial = Store(tmp_path), everything.trials[0]
    versions = {"torch_version": "2.13.0+cu130", "cuda_version": "13.0", "python_version": "3.11.2"}
    store.write(replace(made_row(trial, {"loss": 1.0}, 1), commit="5d02964+a1b2c3d4", **versions), [])
    text = Reader(report(everything, store)).texts["provenance"]
    for told in ("5d02964+a1b2c3d4", "torch 2.13.0+cu130 with CUDA 13.0", "3.11.2"):
        assert told in text


def test_the_file_of_a_study_that_is_not_shipped_is_on_the_page(everything, read):
    text = read.texts["reproduce"]
    assert "Save the study file below as everything.toml." in text
    assert "activemem study run everything.toml\nactivemem table render everything --published\n" in text
    assert everything.document.text in text


def test_a_shipped_study_is_named_with_its_overrides(tmp_path):
    text = Reader(report(load_study("quickstart", ["train.epochs=3"]), Store(tmp_path))).texts["reproduce"]
    assert "activemem study run quickstart --set train.epochs=3\n" in text
    assert "Save" not in text


def test_numbers_of_a_paper_are_printed_only_for_a_study_that_has_one(tmp_path):
    text = Reader(report(load_study("ablation-small"), Store(tmp_path))).texts["reproduce"]
    assert "activemem table render ablation-small\n" in text


def test_trials_of_another_study_are_reported(everything, kept, tmp_path):
    [first, *_] = kept.trials().drop("metrics").filter(study="everything").iter_rows(named=True)
    store = Store(tmp_path)
    store.write(TrialRow(metrics=(), **{**first, "study": "before"}), [])
    assert "1 trial trained" in Reader(report(everything, store)).texts["provenance"]


def test_the_text_of_a_file_is_shown_and_never_interpreted(everything, tmp_path):
    wild = '<script>alert(1)</script> & \\"quotes\\"'
    text = everything.document.text.lstrip().replace("Everything that can happen to a cell", wild)
    study = load_study(f"# <b>why</b>\n{text}")
    read = Reader(report(study, Store(tmp_path)))
    assert read.all("script") == read.all("b") == []
    assert '<script>alert(1)</script> & "quotes"' in read.texts[""]
    assert "<b>why</b>" in read.texts["question"]


@pytest.mark.parametrize("design", ["grid", "one_at_a_time"])
def test_the_page_of_every_design_says_which_cells_it_has(design, tmp_path):
    levels = {"mixer": ["sa", "conv(k=3)"], "task": ["sort", "reverse"], "seed": [0]}
    study = load_study(study_text(study={"design": {"name": design}}, factors=levels))
    texts = Reader(report(study, Store(tmp_path))).texts
    assert f": {len(study.trials)} trial" in texts["design"]


def test_a_search_shows_its_dimensions_and_its_best_points(tmp_path):
    text = study_text(
        model={"recipe": "conv(k={k}) >> ff(8)", "dropout": "{dropout}"},
        task={"name": "addition"},
        search={"trials": 20, "metric": "max_length", "direction": "max"},
        space={"k": "integer(3, 40)", "dropout": "real(0.0, 0.5)"},
        factors={"seed": [0]},
    )
    study, store = (
        load_study(f"# How far should a convolution see to learn addition?\n{text}"),
        Store(tmp_path),
    )
    [trial] = study.search.trials_of({"k": 7, "dropout": 0.25})
    when = datetime(2026, 11, 28, tzinfo=UTC)
    row = TrialRow(
        trial=trial.id,
        attempt=0,
        study=study.name,
        recipe=trial.settings.model.recipe,
        recipe_id="0" * 8,
        task="addition",
        seed=0,
        status="done",
        factors='{"k": 7, "dropout": 0.25, "seed": 0}',
        settings=trial.settings.model_dump_json(),
        metrics=(("max_length", 19.0),),
        parameters=1,
        flops=1.0,
        epochs=20,
        steps=1,
        seconds=1.0,
        peak_mib=1.0,
        version="0.1.0",
        device="a processor",
        host="elsewhere",
        started=when,
        finished=when,
    )
    store.write(row, [])
    texts = Reader(report(study, store)).texts
    assert "A search of 20 points for the highest max_length" in texts["design"]
    assert "How far should a convolution see to learn addition?" in texts["question"]
    assert "19.0\n1\n1\nconv(k=7) >> ff(8)\n0.25" in texts["tables"]
    assert "search.space.dropoutreal(0.0, 0.5)" in texts["settings"]


def test_a_point_is_shown_by_its_recipe_without_holes(tmp_path):
    text = study_text(
        model={"recipe": "choice(sa, conv(k=integer(2, 9))) >> ff({filter})"},
        task={"name": "sort"},
        search={"trials": 9, "metric": "max_length", "direction": "max"},
        space={"filter": "choice(8, 16)"},
    )
    study, store = load_study(text), Store(tmp_path)
    trial = study.search.trial_of({"filter": 8, "choice": "sa"})
    keep(store, trial, settings=trial.settings.model_dump_json())
    assert "sa >> ff(8)" in Reader(report(study, store)).texts["tables"]


def test_code_in_the_question_is_marked_as_code(everything, kept):
    page = report(load_study("# Is `a<b` right?\n\n" + everything.document.text), kept)
    assert "Is <code>a&lt;b</code> right?" in page


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("# Why\n# so?\n#\n# Because.\n\n# Not this.\n[study]\n", ["Why so?", "Because."]),
        ("# Why?\n#\n#     activemem study run why    # an hour\n#\n# Because.\n", ["Why?", "Because."]),
        ("[study]\n# Not at the head.\n", []),
        ("\n\n#tight\n", ["tight"]),
    ],
)
def test_the_comment_at_the_head_of_a_file_is_the_question(text, paragraphs):
    assert leading_comment(text) == paragraphs
