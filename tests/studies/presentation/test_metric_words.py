"""Titles of metrics agree with the settings of the trials."""

import pytest

from activemem import load_study
from activemem.studies import METRICS
from activemem.studies.catalog.metrics import find_metric
from activemem.studies.presentation.metric_words import (
    caution_sentence,
    describe_metrics,
    difference_sentence,
    with_true_title,
)

from ...study_texts import study_text

LENGTHS = {"name": "sort", "test_lengths": [8, 9, 10]}
TRANSLATION = {
    "task": {"name": "translation", "corpus": "wmt14-en-fr", "tokens": "words"},
    "train": {"curriculum": None},
    "factors": {"mixer": ["seq2seq(lstm, lstm)"]},
    "model": {"recipe": "{mixer}"},
}
GROWN = {"train": {"curriculum": {"start": 5, "grow_at": "{grow_at}"}}}


def settings_of(**tables):
    tables = {"factors": {"mixer": ["sa"]}, "task": {"name": "sort"}} | tables
    return [trial.settings for trial in load_study(study_text(**tables)).trials]


def titled(name, settings, **how):
    metric, heading = with_true_title(find_metric(name), settings, **how)
    return metric.axis_title or metric.title, metric.title, heading


@pytest.mark.parametrize(
    ("name", "tables", "heading"),
    [
        ("max_length", {}, ""),
        ("max_length", {"train": {"curriculum": {"start": 5, "grow_at": 0.95}}}, "≥ 95 %"),
        ("accuracy", {}, ""),
        ("loss", {}, ""),
        ("loss", {"train": {"curriculum": None, "lengths": [3, 9]}}, ""),
        (
            "loss",
            {
                "task": {"name": "recall_addition"},
                "train": {"curriculum": None},
                "factors": {"mixer": ["sa >> mean_pool"]},
                "model": {"recipe": "{mixer}"},
            },
            "",
        ),
        ("dev_accuracy", {"train": {"curriculum": None, "lengths": [3, 9]}}, ""),
        ("test_accuracy", {"task": LENGTHS}, ""),
        (
            "test_accuracy[40]",
            {
                "task": {"name": "parity", "lengths": [2, 10], "test_lengths": [10, 40]},
                "train": {"curriculum": None},
            },
            "",
        ),
        ("test_loss[9]", {"task": LENGTHS}, ""),
        ("test_exact", {"task": {"name": "sort", "test_lengths": [8, 16]}}, ""),
        (
            "test_accuracy",
            {"task": {"name": "parity", "test_lengths": [8, 16, 32]}, "train": {"curriculum": None}},
            "",
        ),
        (
            "test_loss",
            {"task": {"name": "mqar", "tests": [[64, 4], [64, 8]]}, "train": {"curriculum": None}},
            "",
        ),
        ("bleu", {"task": {"beam": 4, "length_penalty": 0.6}}, "beam 4"),
        ("bleu[10-20]", {"task": {}}, ""),
        ("loss", {"train": {"label_smoothing": 0.1}}, ""),
        ("parameters", {}, ""),
    ],
)
def test_a_title_says_what_settings_make_of_a_metric(name, tables, heading, golden):
    if name.startswith("bleu") or "label_smoothing" in tables.get("train", {}):
        tables = {key: TRANSLATION[key] | tables.get(key, {}) for key in TRANSLATION}
    found = titled(name, settings_of(**tables))
    assert found[2] == heading
    golden(found[1])


def test_where_trials_differ_the_title_fits_all_and_a_sentence_says_in_what(golden):
    settings = settings_of(**GROWN, factors={"mixer": ["sa"], "grow_at": [0.9, 1.0], "seed": [0, 1]})
    metric = find_metric("max_length")
    assert titled("max_length", settings)[1:] == (METRICS["max_length"].title, "")
    golden(difference_sentence({metric: settings}))
    assert describe_metrics(dict.fromkeys([metric, find_metric("parameters")], settings[:1])) == (
        "max_length: longest length with at least 90 % accuracy.",
    )
    assert describe_metrics({metric: settings})[1].startswith("Measured differently")


def test_a_metric_of_the_length_reached_does_not_rank_models(golden):
    metrics = [find_metric("max_length"), find_metric("accuracy")]
    several = settings_of(factors={"mixer": ["sa", "conv(k=3)"]})
    golden(caution_sentence(metrics, several))
    assert caution_sentence(metrics, settings_of(factors={"mixer": ["sa"], "seed": [0, 1]})) == ""
    fixed = settings_of(train={"curriculum": None, "lengths": [3, 9]}, factors={"mixer": ["sa", "conv(k=3)"]})
    assert caution_sentence([find_metric("loss")], fixed) == ""


def test_an_axis_of_lengths_leaves_them_to_its_ticks(golden):
    settings = settings_of(task=LENGTHS)
    golden(titled("test_accuracy", settings, over_index=True)[0])


def test_without_trials_a_title_fits_all_settings():
    assert titled("max_length", [])[1] == METRICS["max_length"].title


RECALL = {"name": "mqar", "vocab": 64, "length": 32, "pairs": 4}
WORDS = {"name": "word_problem", "group": "S3", "lengths": [2, 16], "test_lengths": [16, 32]}


def test_a_scaled_accuracy_names_its_formula_its_guess_and_its_lengths(golden):
    settings = settings_of(task=WORDS, train={"curriculum": None})
    title = titled("test_scaled_accuracy", settings)[1]
    golden(title)


def test_a_scaled_accuracy_names_the_guess_of_its_own_test_set():
    task = RECALL | {"tests": [[16, 2], [32, 4]]}
    settings = settings_of(task=task, train={"curriculum": None})
    for name, guess in (("", "0.333"), ("[16-2]", "0.5"), ("[32-4]", "0.25")):
        assert f"with guess {guess}" in titled(f"test_scaled_accuracy{name}", settings)[1]
    assert "with guess 0.25 to 0.5" in titled("test_scaled_accuracy", settings, over_index=True)[1]


def test_metrics_that_are_each_measured_in_one_way_are_not_called_different():
    recall, words = (settings_of(task=task, train={"curriculum": None}) for task in (RECALL, WORDS))
    scaled, plain = find_metric("test_scaled_accuracy"), find_metric("test_accuracy")
    assert describe_metrics({scaled: [*recall, *words]})[-1].startswith("Measured differently")
    apart = describe_metrics({scaled: recall, plain: words})
    assert not any(each.startswith("Measured differently") for each in apart)


def test_lengths_that_only_some_trials_have_together_are_named(golden):
    mixed = [each for task in (RECALL, WORDS) for each in settings_of(task=task, train={"curriculum": None})]
    names = ("test_accuracy", "test_scaled_accuracy")
    golden([difference_sentence({find_metric(name): mixed}) for name in names])
