"""Pages over HTTP; test_in_browser.py tests their display."""

import json
import re
from html.parser import HTMLParser

import pytest

from activemem import load_study
from activemem.reporting.page import report
from activemem.reporting.serve import metric_words, trial_levels, trial_words
from activemem.storage import STARTS_FILE, Store, read, write_note

from ...study_texts import study_text
from .conftest import fill, get, listening, names, section, serving, wait_for, write_end, write_study

SECTIONS = ["claims", "tables", "figures", "progress", "learning", "failures", "trials"]
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


def test_the_list_has_each_study_with_its_main_result(still, tmp_path, drawn, golden):
    words = " ".join(get(still, "/")[1].split())
    assert "<p>Undecided with 1 seed: sa reverses farther. " in words
    assert "task=reverse: 2 of 3 seeds not run. All claims: 0 confirmed, " in words
    plain, store = load_study(drawn.document.text.partition("[[claim]]")[0]), Store(tmp_path)
    write_study(store, plain)
    with serving(store) as server:
        assert "Best" not in get(server, "/")[1]
        fill(store, plain)
    with serving(store) as server:
        page = get(server, "/")[1]
    golden(re.findall("<p>(Best .*)</p>", page))


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


def test_a_study_has_its_sections_in_order_and_what_the_report_has(still):
    _, page = get(still, STUDY)
    assert names(page) == SECTIONS
    assert "41.0" in page
    assert "sa reverses farther" in page
    assert "3 × 90 % of &lt;memory&gt; &amp; more _x_" in page
    assert "<memory>" not in page


def test_without_running_trials_the_curves_are_those_of_the_trials_that_ended_last(still):
    learning = section(get(still, STUDY)[1], "learning")
    assert "the 6 trials" in learning
    assert learning.count("<svg") == 1
    assert "Epoch 2: loss " in section(get(still, f"{STUDY}?metric=loss")[1], "learning")


def trial_at(study, mixer, task, seed):
    levels = {"mixer": mixer, "task": task, "seed": seed}
    return next(trial for trial in study.trials if trial.levels == levels)


def test_a_trial_has_a_page_with_its_curves_settings_and_command(still, drawn):
    trial = trial_at(drawn, "sa", "sort", 1)
    address = f"{STUDY}/trial/{trial.id}"
    assert address in [each.get("href") for each in Tags(get(still, STUDY)[1]).all("a")]
    answer, page = get(still, address)
    assert answer.status == 200
    assert names(page) == ["trial"]
    assert {"seed 0", "seed 1", "seed 2"} <= set(re.findall("<title>(seed .), Epoch", page))
    assert ">15.0</td>" in page
    assert "<code>train.optimizer.lr</code>" in page
    command = "study run everything.toml --only mixer=sa --only task=sort --only seed=1 --results repeated"
    assert command in page
    assert get(still, f"{address}?metric=loss")[0].status == 200


def test_the_page_of_a_failed_trial_has_its_reason_and_trains_it_again(still, drawn):
    trial = trial_at(drawn, "persistent_conv(k=20) + sa", "sort", 0)
    address = f"{STUDY}/trial/{trial.id}"
    failures = get(still, STUDY)[1].partition('id="failures"')[2].partition("</section>")[0]
    assert f'<a href="{address}">' in failures
    _, page = get(still, address)
    assert "90 % of &lt;memory&gt; &amp; more" in page
    assert "Traceback" in page
    assert "--retry-failed</code>" in page


def test_the_page_of_a_trial_follows_its_training(server, store, drawn):
    missing = next(trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"]))
    _, page = get(server, f"{STUDY}/trial/{missing.id}")
    assert "<strong>waiting</strong>" in page
    begin(store, missing, epoch=2)
    shown = wait_for(server, f"{STUDY}/trial/{missing.id}", "trial", "<strong>begun</strong>, epoch 2")
    assert f"seed {missing.levels['seed']}, Epoch 2" in shown


def test_a_figure_shows_its_values(still):
    _, page = get(still, STUDY)
    assert section(page, "figures").count("</title></rect>") > 0
    ids = [each["id"] for _, each in Tags(page).found if "id" in each]
    assert len(ids) == len(set(ids))


def test_a_change_of_a_page_is_an_event(server, store, drawn):
    missing = next(trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"]))
    with listening(server, f"/events{STUDY}") as events:
        first = next(events)
        write_end(store, missing, {"max_length": 77.25, "loss": 0.25})
        # a page between the writing of the metrics and of the row may be an event, too
        assert any(first != each == get(server, STUDY)[0].getheader("ETag") for each in events)


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
        assert "unsafe" not in policy
        tags = Tags(page)
        assert not [
            name for _, each in tags.found for name in each if name.startswith("on") or name == "style"
        ]
        assert all(each["src"].startswith("/static/") for each in tags.all("script"))
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


def test_a_trial_that_trains_has_a_curve_that_grows_and_a_time(server, store, drawn):
    missing = [trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"])]
    lease = store.leases("a run").claim(missing[0].id, 0)
    begin(store, missing[0], epoch=2)
    begin(store, missing[1], epoch=1)
    _, page = get(server, STUDY)
    assert "Nothing trains now" not in page
    assert re.search(r"1 running · 1 begun · 9 left · ETA \d+ s", page)
    assert "The 2 of 2 trials" in page
    assert "Epoch 2: loss 0.25" in section(page, "learning")
    begin(store, missing[1], epoch=2)
    wait_for(server, STUDY, "progress", "2/2")
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
    monkeypatch.setattr(server.site._reader, "_look_s", 3600.0)
    monkeypatch.setattr(server.site._reader, "_due", 0.0)
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
        "/static/../x",
        "/study/everything/trial/nothing",
        "/study/nothing/trial/nothing",
        "/favicon.ico",
    ],
)
def test_unknown_addresses_are_not_found(still, path):
    assert get(still, path)[0].status == 404


def test_nothing_can_be_changed(still):
    answer, _ = get(still, STUDY, method="POST")
    assert (answer.status, set(answer.getheader("Allow").split(", "))) == (405, {"GET", "HEAD"})


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


@pytest.mark.slow  # a thousand rows are written and flushed
def test_a_page_of_a_thousand_trials_is_as_small_as_one_of_a_hundred(tmp_path):
    sizes = []
    for seeds in (50, 500):
        factors = {"mixer": ["sa", "conv(k=3)"], "task": ["sort"], "seed": list(range(seeds))}
        study = load_study(study_text(factors=factors))
        store = Store(tmp_path / str(seeds))
        write_study(store, study)
        for number, trial in enumerate(study.trials):
            write_end(store, trial, {"loss": 0.5} if number % 4 else "failed: why\nTraceback " * 20, number)
        with serving(store) as server:
            sizes.append(len(get(server, "/study/tiny")[1]))
    assert sizes[1] < 1.5 * sizes[0]


def test_a_trial_shows_the_metric_of_its_study_first():
    measured = {"loss": 0.5, "accuracy": 0.9, "max_length": 4.0, "length": 3.0, "seconds_ahead": 1.0}
    own = load_study("search-mixers").metrics
    assert metric_words({**measured, own[0]: 2.0}, own)[0][0] == own[0]
    assert load_study("quickstart").metrics == ("max_length",)


def test_the_curves_of_points_of_a_search_have_different_names():
    space = {"mixer": "choice(conv(k={k}), sa)", "k": "choice(3, 5)"}
    study = load_study(
        study_text(
            space,
            model={"recipe": "2 * ({mixer} >> ff(8))"},
            task={"name": "sort"},
            search={"trials": 3, "metric": "loss", "sampler": "grid"},
        )
    )
    points = ({"mixer": "conv(k={k})", "k": 3}, {"mixer": "conv(k={k})", "k": 5}, {"mixer": "sa"})
    names = trial_words(study, [trial_levels(study.search.trial_of(point)) for point in points])
    assert len(set(names)) == 3
    assert all("ff(8)" not in name for name in names)


def test_a_heading_sorts_the_trials_and_sorts_them_the_other_way_round(still):
    def column(query, place):
        _, page = get(still, f"{STUDY}?{query}")
        rows = page.partition('<section aria-labelledby="trials"')[2].split("<tr data-key=")[1:]
        cells = [re.findall(r"<t[hd].*?</t[hd]>", row)[place] for row in rows]
        return page, [re.sub("<.*?>", "", each) for each in cells]

    page, states = column("", 4)
    heads = re.findall(r'<a href="(\?order=[^"]*)#trials">state', page)
    assert heads == ["?order=state"]
    page, up = column("order=state", 4)
    assert up == sorted(states) != states
    assert 'href="?order=-state#trials"' in page
    assert column("order=-state", 4)[1] == sorted(states, reverse=True)
    assert column("order=nothing", 4)[1] == states


def test_a_factor_named_like_a_column_has_a_heading_and_an_order_of_its_own(tmp_path):
    study = load_study(
        study_text(
            train={"epochs": "{epochs}"}, factors={"mixer": ["sa"], "task": ["sort"], "epochs": [3, 4]}
        )
    )
    store = Store(tmp_path)
    write_study(store, study)
    for number, trial in enumerate(study.trials):
        write_end(store, trial, {"loss": 0.5}, number)
    with serving(store) as server:
        heads = re.findall(r'<a href="\?order=([^"]*)#trials">([^<]*)</a>', get(server, "/study/tiny")[1])
    assert [name for _, name in heads if "epochs" in name] == ["factor epochs", "epochs"]
    assert len({order for order, _ in heads}) == len(heads)


def test_the_list_is_sent_before_slow_results_which_follow(server, monkeypatch):
    monkeypatch.setattr("activemem.reporting.serve.site.HEADLINES_S", -1.0)
    _, page = get(server, "/")
    assert "everything · 19 of 36 trials done" in page
    assert "The result is being computed …" in page
    assert "sa reverses farther" not in page
    monkeypatch.setattr("activemem.reporting.serve.site.HEADLINES_S", 600.0)
    wait_for(server, "/", "studies", "sa reverses farther")
