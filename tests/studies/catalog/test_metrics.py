"""The number formats of metrics."""

import math

import pytest

from activemem.studies import METRICS
from activemem.studies.catalog.metrics import (
    find_metric,
    format_number,
    last_digit,
    metric_family,
    unknown_metric,
)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_length", 48.3333, "48.3"),
        ("accuracy", 0.99951, "1.000"),
        ("loss", 1.48694, "1.4869"),
        ("loss", -0.03204, "−0.0320"),
        ("loss", -0.00001, "0.0000"),
        ("length", 7, "7.0"),
        ("tokens_per_s", 1234567.8, "1,234,568"),
        ("test_loss", 1.51893, "1.5189"),
        ("dev_bpc", 1.0549, "1.055"),
        ("test_perplexity", 20.617, "20.6"),
    ],
)
def test_a_number_has_its_metrics_digits(name: str, value: float, text: str) -> None:
    assert METRICS[name].format(value) == text


def test_metrics_of_errors_are_better_when_lower() -> None:
    splits = [
        f"{split}_{name}"
        for split in ("dev", "test")
        for name in ("loss", "loss_padded", "bpc", "perplexity", "ece", "mae")
    ]
    lower = {name for name, metric in METRICS.items() if metric.higher_is_better is False}
    assert {"loss", "solved_epochs", *splits} <= lower  # tests register metrics too
    assert not {name for name in lower if "accuracy" in name or "f1" in name or "bleu" in name}


def test_a_metric_with_an_index_is_one_of_a_family() -> None:
    assert [metric_family(name) for name in ("bleu", "bleu[10-20]", "attention[3,7]")] == [
        "bleu",
        "bleu",
        "attention",
    ]


def test_a_metric_without_an_index_is_the_one_of_the_catalogue():
    assert find_metric("loss") is METRICS["loss"]
    assert find_metric("loss", {"loss": 1}).decimals == 1


def test_a_figure_of_a_dev_metric_names_the_split() -> None:
    shown = {name: metric.axis_title or metric.title for name, metric in METRICS.items()}
    assert [
        name for name, title in shown.items() if name.startswith("dev_") and "dev split" not in title
    ] == []


def test_an_unknown_metric_without_a_near_name_is_reported_without_the_list():
    assert unknown_metric("acuracy") == "unknown metric 'acuracy'; nearest: accuracy"
    told = "unknown metric 'qq'; list all: activemem list metrics (a plug-in's metrics need --plugin FILE)"
    assert unknown_metric("qq") == told


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (1234567.25, 1, "1,234,567.2"),
        (-3.5e12, 2, "−3.50e12"),
        (6.5714e124, 2, "6.57e124"),
        (-0.00001, 3, "0.000"),
        (3.14159e-15, 17, "3.14e-15".replace("-", "−")),
        (0.0, 17, "0"),
        (math.inf, 2, "∞"),
    ],
)
def test_a_number_has_its_decimals_or_three_digits_and_a_power_of_ten(value, decimals, shown):
    assert format_number(value, decimals) == shown


@pytest.mark.parametrize(
    ("decimals", "largest", "step"),
    [(3, 2.5, 1e-3), (7, 4e-5, 1e-7), (3, 4e-5, 1e-7), (3, 0.0, 1e-3), (0, 7.0, 1.0), (2, 6.6e124, 1e122)],
)
def test_the_last_digit_follows_what_is_shown_or_the_values(decimals, largest, step):
    assert last_digit(decimals, largest) == pytest.approx(step)
