"""paper.toml: its numbers are those of claims, and all of its faults are reported at once."""

from pathlib import Path

import pytest

from activemem import StudyError, load_study, open_study
from activemem.reporting.manuscript.files import paper_files
from activemem.reporting.manuscript.paper_file import read_manuscript
from activemem.storage import Store

from ...study_texts import study_text
from ..target_factories import (
    FAST,
    NEVER,
    SLOW,
    TASK,
    TRAIN,
    results,
    store_course,
    study,
    target_table,
)


def test_a_number_is_a_mean_over_seeds_with_the_digits_of_its_metric(read):
    numbers = read().numbers
    assert numbers["sort"].text == "30.0"  # of 20, 30 and 40
    assert numbers["gain"].text == "−15.0"  # of 14, 15 and 16 less these
    assert numbers["times"].text == "1.976"  # the mean of the seeds' quotients
    assert [numbers[f"gain.{end}"].text for end in ("low", "high", "n")] == ["−37.4", "7.4", "3"]


def test_a_number_alone_uses_all_looks_and_a_difference_those_that_decide_it(tmp_path):
    factors = {"mixer": ["sa", "conv(k=3)"], "seed": [0, 1, 2]}
    text = study_text(study={"max_seeds": 5}, task=TASK, train=TRAIN, factors=factors)
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    store = Store(tmp_path / "results")
    for trial in load_study(text).with_later_seeds().cells:
        slow = trial.levels["mixer"] == "sa" and trial.levels["seed"] < 3
        store_course(store, trial, SLOW if slow else FAST)
    paper = """\
[paper]
studies = ["tiny.toml"]
[numbers.tiny]
alone = "steps_to[dev_loss <= 1.5, mixer=sa]"
gain = "steps_to[dev_loss <= 1.5, mixer=sa] - steps_to[dev_loss <= 1.5, mixer=conv(k=3)]"
"""
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    numbers = read_manuscript(tmp_path / "paper.toml", lambda place: store).numbers
    assert [numbers[f"{name}.n"].text for name in ("alone", "gain")] == ["5", "3"]
    assert (numbers["alone"].text, numbers["gain"].text) == ("320", "200")  # 400 thrice, 200 twice
    assert 95 < float(numbers["gain.level"].text) < 100


SPEEDUP = "speedup(conv(k=3) over sa, steps_to[dev_loss <= 1.5])"


def test_a_difference_that_a_claim_compares_has_its_level_and_seeds(tmp_path):
    sa, conv = (f"steps_to[dev_loss <= 1.5, mixer={mixer}]" for mixer in ("sa", "conv(k=3)"))
    claims = [
        {"name": "other", "holds": f"{sa} - {conv} - 10 > 0", "level": 0.6},
        {"name": "slower", "holds": f"{conv} < {sa}", "level": 0.99},
        {"name": "faster", "holds": f"{SPEEDUP} > 1", "level": 0.9},
    ]
    factors = {"mixer": ["sa", "conv(k=3)"], "seed": [0, 1, 2]}
    text = study_text(task=TASK, train=TRAIN, factors=factors, claim=claims)
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    store, found = Store(tmp_path / "results"), load_study(text)
    for trial in found.cells:
        is_slow = trial.levels["mixer"] == "sa" and trial.levels["seed"] < 2
        store_course(store, trial, SLOW if is_slow else FAST)
    numbers = {"gain": f"{sa} - {conv}", "loss": f"{conv} - {sa}", "alone": sa}
    numbers |= {"times": SPEEDUP, "ratio": f"{conv} / {sa}"}
    lines = "\n".join(f'{name} = "{value}"' for name, value in numbers.items())
    (tmp_path / "paper.toml").write_text(f'[paper]\nstudies = ["tiny.toml"]\n[numbers.tiny]\n{lines}\n')
    read = read_manuscript(tmp_path / "paper.toml", lambda place: store).numbers
    levels = {name: read[f"{name}.level"].text for name in numbers}
    assert levels == {"gain": "99", "loss": "99", "alone": "95", "times": "90", "ratio": "95"}
    low, high = (read[f"gain.{end}"].text for end in ("low", "high"))
    assert [read[f"loss.{end}"].text for end in ("low", "high")] == [f"−{high}", low.removeprefix("−")]
    _, slower, faster = open_study(found, store).check_claims()
    assert [slower.deciding.format(-end) for end in reversed(slower.deciding.interval)] == [low, high]
    assert read["times"].text == f"{faster.deciding.effect:.2f}"


@pytest.mark.parametrize("over", ["lr", "lrr"])
def test_a_metric_can_pick_the_learning_rate_of_a_number(tmp_path, golden, over):
    factors = {"mixer": ["sa"], "lr": [0.001, 0.01], "seed": [0, 1]}
    train = TRAIN | {"optimizer": {"name": "adam", "lr": "{lr}"}}
    text = study_text(task=TASK, train=train, factors=factors)
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    store = Store(tmp_path / "results")
    for trial in load_study(text).trials:
        store_course(store, trial, SLOW if trial.levels["lr"] == 0.001 else FAST)
    number = f'{{ value = "steps_to[dev_loss <= 1.5, mixer=sa]", over = "{over}", pick_by = "dev_loss" }}'
    paper = f'[paper]\nstudies = ["tiny.toml"]\n[numbers.tiny]\nfast = {number}\n'
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    if over == "lr":
        assert read_manuscript(tmp_path / "paper.toml", lambda place: store).numbers["fast"].text == "200"
    else:
        with golden.raises(StudyError):
            read_manuscript(tmp_path / "paper.toml", lambda place: store)


def test_an_interval_ends_where_no_value_can_be(tmp_path):
    factors, store = {"mixer": ["sa", "gru"], "seed": [0, 1]}, Store(tmp_path / "results")
    text = study_text(task=TASK, train=TRAIN, factors=factors)
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    for trial, losses in zip(load_study(text).trials, 2 * (FAST, SLOW), strict=True):
        store_course(store, trial, losses)
    paper = """\
[paper]
studies = ["tiny.toml"]
[numbers.tiny]
steps = "steps_to[dev_loss <= 1.5, mixer=sa]"
more = "steps_to[dev_loss <= 1.5, mixer=sa] - 100"
mean = "mean(steps_to[dev_loss <= 1.5, mixer=m] for m in mixer)"
picked = { value = "steps_to[dev_loss <= 1.5]", over = "mixer", pick_by = "dev_loss" }
"""
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    numbers = read_manuscript(tmp_path / "paper.toml", lambda place: store).numbers
    for name in ("steps", "mean", "picked"):
        assert [numbers[f"{name}{end}"].text for end in ("", ".low", ".high")] == ["300", "0", "1,571"]
    assert numbers["more.low"].text == "−1,071", "a difference may be negative"


def test_a_number_with_trainings_that_missed_their_target_is_the_bound_of_the_tables(tmp_path):
    paper = """\
[paper]
studies = ["tiny.toml"]
[numbers.tiny]
steps = "steps_to[dev_loss <= 1.5, mixer=conv(k=3)]"
faster = "speedup(sa over conv(k=3), steps_to[dev_loss <= 1.5])"
slower = "speedup(conv(k=3) over sa, steps_to[dev_loss <= 1.5])"
unknown = "speedup(sa over conv(k=3), steps_to[dev_loss <= 0.1])"
"""
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(study(table=target_table("dev_loss")).document.text, encoding="utf-8")
    found = results(study(), tmp_path / "store", {"sa": [FAST] * 3, "conv(k=3)": [NEVER] * 3})
    made = read_manuscript(tmp_path / "paper.toml", lambda place: found.store)
    numbers = made.numbers
    texts = {name: numbers[name].text for name in ("steps", "faster", "slower", "unknown")}
    assert texts == {"steps": "> 400", "faster": "> 2.00", "slower": "< 0.50", "unknown": None}
    assert "target: not reached by either" in numbers["unknown"].gaps
    written = paper_files(made)["numbers.tex"].decode()
    assert r"\csname am:faster\endcsname{\ensuremath{>} 2.00}" in written
    assert r"\csname am:slower\endcsname{\ensuremath{<} 0.50}" in written


def test_the_prediction_of_a_law_has_the_interval_of_the_table_of_laws(tmp_path):
    paper = """\
[paper]
studies = ["lm-ladder-small"]
[numbers.lm-ladder-small]
size = "law(test_bits_per_byte[mixer={gated_delta}, width=96])"
miss = "test_bits_per_byte[mixer={kda}, width=96] - law(test_bits_per_byte[mixer={kda}, width=96])"
"""
    (tmp_path / "paper.toml").write_text(paper, encoding="utf-8")
    store = Store(Path(__file__).parents[3] / "studies" / "results")
    found = read_manuscript(tmp_path / "paper.toml", lambda place: store)
    (laws,) = (table for table in found.studies[0].tables() if table.name == "laws")
    predicted = laws.cells[laws.rows.index("gated_delta")][laws.columns.index("predicted")]
    texts = [found.numbers[f"size{end}"].text for end in ("", ".low", ".high", ".n")]
    assert texts[0] == predicted.text
    assert f"[{texts[1]}, {texts[2]}]" == predicted.interval
    assert texts[3] == "3"
    assert "miss.low" not in found.numbers, "its spread over seeds leaves out the error of the law"


def test_a_number_says_which_seeds_it_lacks(read):
    numbers = read().numbers
    assert (numbers["part"].text, numbers["part.n"].text) == ("42.2", "2")
    assert "1 of 3 seeds failed" in numbers["part"].gaps
    assert numbers["none"].text is None
    assert "3 of 3 seeds failed" in numbers["none"].gaps
    assert "none.low" not in numbers


def test_a_study_whose_file_beside_the_paper_has_changed_is_named(tmp_path, caplog):
    text, store = study(table=target_table("dev_loss")).document.text, Store(tmp_path / "results")
    name = load_study(text).name
    store.records.save(name, {"text": text, "overrides": [], "path": str(tmp_path / f"{name}.toml")})
    (tmp_path / f"{name}.toml").write_text(f"{text}# changed\n", encoding="utf-8")
    (tmp_path / "paper.toml").write_text(f'[paper]\nstudies = ["{name}"]\n', encoding="utf-8")
    read_manuscript(tmp_path / "paper.toml", lambda place: store)
    (told,) = caplog.messages
    assert told.startswith(f"{tmp_path / name}.toml has changed since its last run")


def test_a_counted_number_has_no_seeds_and_no_interval(read):
    numbers = read().numbers
    assert [name for name in numbers if name.startswith("size")] == ["size"]
    assert numbers["size"].text
    assert numbers["size"].source.endswith("the settings)")


def test_all_faults_are_reported_at_once_with_the_nearest_names(read, golden):
    with pytest.raises(StudyError) as caught:
        read(
            """\
[paper]
studies = ["everything.toml", "nothing.toml", "everything.toml"]
[tables]
everything = "table5"
[numbers.everything]
a = "max_len[task=sort, mixer=sa]"
b = "max_length[task=sorted, mixer=sa]"
c = "max_length[task=sort, mixer=sa] > 3"
d = "max_length[task=sort]"
e = "3"
f = "dev_accuracy[task=sort, mixer=sa]"
"1" = "loss[task=sort, mixer=sa]"
"""
        )
    golden(str(caught.value))


@pytest.mark.parametrize(
    "text",
    [
        '[paper]\nstudies = "everything.toml"\nfolder = "."',
        '[paper]\nstudies = "everything.toml"\n[figures]\nevery = []',
        '[paper]\nstudies = "everything.toml"\n[licences]\n"notes.txt" = "CC0"',
        "[numbers.x]",
        "[paper]\nstudies = []",
        '[paper]\nstudies = "search-mixers"\n[numbers.search-mixers]\na = "loss"',
    ],
)
def test_what_cannot_be_a_paper_is_refused(read, text, golden):
    with golden.raises(StudyError):
        read(text)
