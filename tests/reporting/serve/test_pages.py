"""Pages over HTTP; test_in_browser.py tests their display."""

import json
import re
import time
from html.parser import HTMLParser

import pytest

from activemem import load_study
from activemem.reporting.page import report
from activemem.reporting.serve.trials import metric_words
from activemem.storage import Store, read
from activemem.storage.trial_files import STARTS_FILE, write_note

from .conftest import fill, get, names, section, serving, wait_for, write_end, write_study

STUDY = "/study/everything"


class Tags(HTMLParser):
    """All tags of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


def begin(store, trial, epoch=1, loss=0.5):
    """Store a running trial with this many epochs."""
    folder = store.files.checkpoint_dir(trial.id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STARTS_FILE).write_text(f"{trial.to_json()}\n")
    rows = [
        type("Row", (), {"name": "loss", "epoch": each, "value": loss / each}) for each in range(1, epoch + 1)
    ]
    write_note(folder, epoch, {"loss": loss / epoch}, rows, seconds=10.0 * epoch)


def test_the_list_has_each_study_with_its_counts(still):
    answer, page = get(still, "/")
    assert answer.status == 200
    assert f'<a href="{STUDY}">Everything that can happen to a cell</a>' in page
    assert "everything · 19 of 36 trials done · 5 failed · 3 pruned · 9 left" in page


def test_the_list_has_a_bar_only_for_studies_that_are_not_finished(still, tmp_path, drawn):
    assert '<svg class="bar"' in get(still, "/")[1]
    store = Store(tmp_path)
    write_study(store, drawn)
    for number, trial in enumerate(drawn.trials):
        write_end(store, trial, {"max_length": 20.0, "loss": 0.05}, number)
    with serving(store) as server:
        page = get(server, "/")[1]
    assert "36 of 36 trials done" in page
    assert "<svg" not in page


def test_a_study_is_its_report_with_the_progress_and_the_trials_in_place_of_the_status(store, drawn):
    with serving(store) as server:
        _, page = get(server, STUDY)
    written = report(drawn, store)
    expected = [["progress", "trials"] if name == "status" else [name] for name in names(written)]
    assert names(page) == [name for several in expected for name in several]
    for name in ("claims", "tables", "failures", "design", "recipes", "settings"):
        assert section(page, name) == section(written, name)
    assert "41.0" in page
    assert "sa reverses farther" in page
    assert "3 × 90 % of &lt;memory&gt; &amp; more _x_" in page
    assert "<memory>" not in page


def test_a_failed_trial_has_its_reason(still):
    failures = section(get(still, STUDY)[1], "failures")
    assert "90 % of &lt;memory&gt; &amp; more" in failures
    assert "Traceback" in failures


def test_a_figure_shows_its_values(still):
    _, page = get(still, STUDY)
    assert section(page, "figures").count("</title></rect>") > 0
    ids = [each["id"] for _, each in Tags(page).found if "id" in each]
    assert len(ids) == len(set(ids))


def test_a_page_that_has_not_changed_is_not_sent_again(server, store, drawn):
    answer, _ = get(server, STUDY)
    version = answer.getheader("ETag")
    assert get(server, STUDY, If_None_Match=version)[0].status == 304
    missing = next(trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"]))
    write_end(store, missing, {"max_length": 77.25, "loss": 0.25})
    wait_for(server, STUDY, "progress", "20 of 36 trials done")
    assert get(server, STUDY, If_None_Match=version)[0].status == 200


def test_nothing_in_a_page_runs_and_every_file_is_ours(still):
    for path in ("/", STUDY):
        answer, page = get(still, path)
        policy = answer.getheader("Content-Security-Policy")
        assert "script-src 'self';" in policy
        tags = Tags(page)
        assert not [
            name for _, each in tags.found for name in each if name.startswith("on") or name == "style"
        ]
        assert [each["src"] for each in tags.all("script")] == ["/live.js"]
        assert not re.search(r"https?://(?!www\.w3\.org)", page)


def test_foreign_text_stays_text(tmp_path, drawn):
    store = Store(tmp_path)
    title = 'Everything "that" <b>can</b> \u202egnihton\x1b[2J'
    text = drawn.document.text.replace('"Everything that can happen to a cell"', json.dumps(title))
    store.records.save(drawn.name, {"text": text, "overrides": []})
    write_end(
        store, drawn.trials[0], "failed: </code><script>alert(1)</script>\n\x1b]0;\u2066\nTraceback <i>"
    )
    with serving(store) as server:
        pages = [get(server, path)[1] for path in ("/", STUDY)]
    for page in pages:
        assert not set(page) & {"\x1b", "\u202e", "\u2066"}
        assert "&lt;b&gt;can" in page
        assert not [each for each in Tags(page).all("script") if "src" not in each]
    assert "Traceback &lt;i&gt;" in pages[1]


def test_a_row_that_is_written_is_shown_with_all_that_it_changes(server, store, drawn):
    get(server, STUDY)
    missing = next(trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"]))
    write_end(store, missing, {"max_length": 77.25, "loss": 0.25})
    wait_for(server, STUDY, "progress", "20 of 36 trials done")
    wait_for(server, STUDY, "tables", "48.1")  # the mean with the first seed's
    wait_for(server, STUDY, "trials", "77.2")


def test_claims_count_added_seeds_as_in_a_report(tmp_path, drawn):
    text = drawn.document.text.replace("[study]\n", "[study]\nmax_seeds = 5\n", 1)
    text = text.replace("task=reverse", "task=sort").replace("sa reverses farther", "sa sorts farther")
    study, store = load_study(text), Store(tmp_path)
    fill(store, study)
    with serving(store) as server:
        assert "n = 3" in get(server, STUDY)[1]
        for trial in study.with_later_seeds().trials:
            if trial.levels["seed"] > 2 and trial.levels["task"] == "sort":
                write_end(store, trial, {"max_length": 15.0 + trial.levels["seed"], "loss": 0.5})
        wait_for(server, STUDY, "claims", "n = 5")
        assert "n = 5" in report(study, store)


def test_a_trial_that_trains_has_its_epoch_and_a_time(server, store, drawn):
    missing = [trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"])]
    lease = store.leases("a run").claim(missing[0].id, 0)
    begin(store, missing[0], epoch=2)
    begin(store, missing[1], epoch=1)
    _, page = get(server, STUDY)
    assert re.search(r"1 running · 1 begun · 9 left · ETA \d+ s", page)
    first, second, *_ = section(page, "trials").partition("<tbody>")[2].split("</tr>")
    assert f"<code>{missing[0].id}</code>" in first
    assert "<td>running</td>" in first
    assert "loss 0.25" in first
    assert "<td>begun</td>" in second
    wait = ">2/2<"
    assert section(page, "trials").count(wait) == 1
    begin(store, missing[1], epoch=2)
    end = time.monotonic() + 600
    while section(get(server, STUDY)[1], "trials").count(wait) < 2:
        assert time.monotonic() < end
    lease.release()


def test_a_study_that_appears_is_in_the_list(server, store, drawn):
    other = drawn.document.text.replace('name = "everything"', 'name = "another"')
    get(server, "/")
    store.records.save("another", {"text": other, "overrides": []})
    # the trials are the same
    wait_for(server, "/", "studies", "another · 19 of 36 trials done")


def test_many_pages_cost_one_reading(server, store, monkeypatch):
    get(server, STUDY)
    looks = []
    state = Store.state
    monkeypatch.setattr(Store, "state", lambda self: looks.append(self) or state(self))
    monkeypatch.setattr(server.pages._reader, "_look_s", 3600.0)
    monkeypatch.setattr(server.pages._reader, "_due", 0.0)
    for _ in range(20):
        get(server, STUDY)
    assert len(looks) == 1


def test_only_files_that_are_new_are_opened(server, store, drawn, monkeypatch):
    get(server, STUDY)
    missing = next(trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"]))
    opened, add = [], read.LatestAttempts._add
    monkeypatch.setattr(
        read.LatestAttempts, "_add", lambda self, row: opened.append(row["trial"]) or add(self, row)
    )
    write_end(store, missing, {"max_length": 1.0, "loss": 1.0})
    wait_for(server, "/", "studies", "20 of 36 trials done")
    assert opened == [missing.id]


@pytest.mark.parametrize(
    "path",
    [
        "/study/nothing",
        "/study/..%2F..%2Fetc",
        "/study/everything/nothing",
        "/../live.js",
        "/favicon.ico",
    ],
)
def test_unknown_addresses_are_not_found(still, path):
    assert get(still, path)[0].status == 404


def test_nothing_can_be_changed(still):
    assert get(still, STUDY, method="POST")[0].status == 501


def test_a_study_that_cannot_be_read_is_reported_and_hides_no_other(tmp_path, drawn):
    store = Store(tmp_path)
    write_study(store, drawn)
    store.records.save("broken", {"text": "[study]\nname = 3\n", "overrides": []})
    with serving(store) as server:
        _, page = get(server, "/")
        assert "cannot be read" in page
        assert f'href="{STUDY}"' in page
        answer, page = get(server, "/study/broken")
        assert answer.status == 404
        assert "broken cannot be read" in page


def test_an_empty_store_says_so(tmp_path):
    with serving(Store(tmp_path / "nothing")) as server:
        assert "No study has run here yet." in get(server, "/")[1]


def test_a_trial_shows_the_metric_of_its_study_first():
    measured = {"loss": 0.5, "accuracy": 0.9, "max_length": 4.0, "length": 3.0, "seconds_ahead": 1.0}
    own = load_study("search-mixers").metrics
    assert metric_words({**measured, own[0]: 2.0}, own)[0][0] == own[0]
    assert load_study("quickstart").metrics == ("max_length",)
