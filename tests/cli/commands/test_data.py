import hashlib
import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from activemem import Corpus, FileSlice, SourceFile, register_dataset
from activemem.cli.live import display as downloads
from activemem.studies import dataset_names
from activemem.studies.catalog import datasets
from activemem.studies.catalog.datasets import Download, ParallelCorpus, Treebank

from ...engine.corpora.http_host import HttpHost, serve

PLACE = Path("texts")
REAL = os.environ.get("ACTIVEMEM_TEST_DATA")  # here, since `run` takes all settings away


def test_the_list_says_of_each_corpus_what_it_is_and_where_its_files_are(run, golden):
    result = run("data", "list", "--data", str(PLACE))
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    paragraphs = result.stdout.rstrip("\n").split("\n\n")
    assert [each.split()[0] for each in paragraphs] == [
        "texts",
        *dataset_names(Corpus),
        "pairs",
        *dataset_names(ParallelCorpus),
        "treebanks",
        *dataset_names(Treebank),
    ]
    golden(paragraphs[2:4])
    golden(paragraphs[-4:-1])


def test_a_corpus_that_is_here_is_listed_with_its_folder(run):
    (PLACE / "text8").mkdir(parents=True)
    (PLACE / "text8" / "text8.zip").touch()
    lines = run("data", "list", "--data", str(PLACE)).stdout.splitlines()
    assert "text8                 100.0 MB   texts/text8" in lines
    assert "text8-6m                6.9 MB   texts/text8" in lines


def test_a_corpus_of_which_only_a_part_is_here_says_so(run):
    (PLACE / "wikitext-2").mkdir(parents=True)
    (PLACE / "wikitext-2" / "wiki.test.tokens").touch()
    lines = run("data", "list", "--data", str(PLACE)).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("wikitext-2 ")]
    assert line.endswith("incomplete: activemem data fetch wikitext-2")


def test_the_list_as_json_has_every_corpus(run, monkeypatch, golden):
    monkeypatch.setenv("ACTIVEMEM_DATA", str(PLACE))
    page = json.loads(run("data", "list", "--json").stdout)["datasets"]
    assert [each["dataset"]["name"] for each in page] == list(dataset_names())
    text8 = page[2]
    assert text8["missing"]
    assert not text8["files"]
    assert not page[1]["missing"]
    golden(page[-2]["missing"])


def test_check_says_what_is_as_it_was_published(run, golden):
    result = run("data", "check", "paradise-lost", "text8", "--data", str(PLACE))
    golden(result.stdout)
    assert result.exit_code == 1


def test_check_of_all_reads_only_what_is_here(run):
    result = run("data", "check", "--data", str(PLACE))
    assert (result.stdout, result.exit_code) == ("paradise-lost: as published\n", 0)


def test_check_reports_what_is_damaged(run, golden):
    (PLACE / "text8").mkdir(parents=True)
    (PLACE / "text8" / "text8").write_bytes(b"abc")
    result = run("data", "check", "--data", str(PLACE))
    golden(result.stdout)
    assert result.exit_code == 1


def test_a_corpus_that_does_not_exist_is_reported_with_the_nearest(run):
    for command in ("fetch", "check"):
        result = run("data", command, "wikitext-3")
        assert (result.exit_code, result.stdout) == (2, "")
        assert re.fullmatch(r"unknown corpus 'wikitext-3'; nearest: wikitext-(2|103)\n", result.stderr)


def test_the_nearest_name_is_that_of_any_kind(run):
    for typed, meant in (("tatoeba-spa", "tatoeba-eng-spa"), ("wsj-simple", "wsj-sample"), ("txt8", "text8")):
        result = run("data", "fetch", typed)
        assert (result.exit_code, result.stderr) == (2, f"unknown corpus '{typed}'; nearest: {meant}\n")


def test_a_corpus_without_an_address_says_where_to_get_it_and_where_to_put_it(run, golden):
    result = run("data", "fetch", "wsj", "--data", str(PLACE))
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
    assert not PLACE.exists()


def test_check_reports_the_missing_files_of_partial_corpora_also_as_json(run, golden):
    (PLACE / "wsj" / "02").mkdir(parents=True)
    (PLACE / "wsj" / "02" / "wsj_0201.mrg").write_text("( (NP (NN x)))\n( (NP (NN y)))\n")
    result = run("data", "check", "--data", str(PLACE))
    told = result.stdout.splitlines()
    assert (result.exit_code, told[0], len(told)) == (1, "paradise-lost: as published", 25)
    golden(told[1:6])
    result = run("data", "check", "wsj", "--json", "--data", str(PLACE))
    (page,) = json.loads(result.stdout)["datasets"]
    assert (result.exit_code, len(page["missing"])) == (1, 21)
    assert page["faults"] == told[1:4]


def test_a_file_that_is_only_shared_does_not_make_another_corpus_be_here(run):
    if REAL is None:
        pytest.skip("ACTIVEMEM_TEST_DATA names no folder with real pairs")
    names = ("multi30k-en-de", "wmt-news-en-fr", "tatoeba-eng-ita", "wsj-sample")
    assert run("data", "fetch", *names, "--from", REAL, "--data", str(PLACE)).exit_code == 0
    result = run("data", "check", "--data", str(PLACE))
    here = ("paradise-lost", "multi30k-en-de", "tatoeba-eng-ita", "wmt-news-en-fr", "wsj-sample")
    assert result.stdout == "".join(f"{name}: as published\n" for name in here)
    assert result.exit_code == 0
    (PLACE / "ptb-sample" / "wsj_0001-0199.index.tsv").write_text("name\nnothing\n")
    lines = run("data", "list", "--data", str(PLACE)).stdout.splitlines()
    assert any(re.match("wsj-sample .* damaged: activemem data check wsj-sample", line) for line in lines)


def test_a_corpus_of_the_package_need_not_be_fetched(run):
    result = run("data", "fetch", "paradise-lost", "--data", str(PLACE))
    assert result.exit_code == 0
    assert result.stderr.startswith("paradise-lost is part of ")
    assert not PLACE.exists()


def test_a_folder_without_the_text_is_reported(run, tmp_path, golden):
    result = run("data", "fetch", "text8", "--from", str(tmp_path), "--data", str(PLACE))
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


@pytest.fixture
def hosted_text():
    """Serve a corpus on this machine."""
    text = b"one two three\n"
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    source = SourceFile(names=("verses.txt",), size=len(text), digest=digest)
    with serve(HttpHost({"/verses.txt": text})) as host:
        register_dataset(
            Corpus(
                name="verses",
                title="one line",
                folder="verses",
                downloads=(Download(name="verses.txt", urls=(f"{host.address}/verses.txt",), digest=digest),),
                splits={split: FileSlice(source=source) for split in ("train", "dev", "test")},
                alphabet=b"",
                licence="none",
                source="made here",
            )
        )
        yield host
        datasets.all_datasets().unregister("verses")


def test_fetch_says_where_each_file_is_and_shows_no_bar_in_a_pipe(run, hosted_text):
    result = run("data", "fetch", "verses", "--data", str(PLACE))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "verses: texts/verses/verses.txt\n"
    told = json.loads(run("data", "fetch", "verses", "paradise-lost", "--data", str(PLACE), "--json").stdout)
    assert told["files"] == {"verses": ["texts/verses/verses.txt"], "paradise-lost": []}
    assert run("data", "check", "verses", "--data", str(PLACE)).stdout == "verses: as published\n"


def test_a_corpus_that_cannot_be_fetched_ends_with_status_two(run, hosted_text):
    hosted_text.files.clear()
    result = run("data", "fetch", "verses", "--data", str(PLACE))
    assert (result.exit_code, result.stdout) == (2, "")
    first, last = result.stderr.splitlines()
    assert first.startswith("verses.txt ")
    assert last.startswith(f"  {hosted_text.address}/verses.txt: ")


def test_on_a_terminal_a_bar_says_how_far_each_file_is(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(
        downloads,
        "Console",
        lambda **_: Console(file=screen, force_terminal=True, width=80, color_system=None),
    )
    with downloads.download_progress() as show:
        show("text8.zip", 1_000_000, 4_000_000)
    assert re.search(r"text8\.zip ━+[╸ ━]* 1\.0/4\.0 MB", screen.getvalue())
