"""The paired bootstrap equals sacreBLEU's for equal seeds."""

import os

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from activemem.reporting.statistics import StatisticsError, paired_bootstrap

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "red", "green", "old", "small", "house", "tree"]


def sentences(count=60):
    rng = np.random.default_rng(7)
    return [" ".join(rng.choice(WORDS, size=9)) + "." for _ in range(count)]


def worsened(lines, share):
    """Return the lines with some words replaced."""
    rng = np.random.default_rng(8)
    return [" ".join("x" if rng.random() < share else word for word in line.split()) for line in lines]


REFERENCES = sentences()
GOOD, BAD = worsened(REFERENCES, 0.1), worsened(REFERENCES, 0.4)


def test_scores_and_p_are_those_of_sacrebleu(monkeypatch):
    found = paired_bootstrap(BAD, [GOOD, BAD], REFERENCES, samples=200, seed=5)
    monkeypatch.setenv("SACREBLEU_SEED", "5")
    systems = [("bad", BAD), ("good", GOOD), ("again", BAD)]
    test = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs", n_samples=200)
    for ours, theirs in zip(found, test()[1]["BLEU"], strict=True):
        assert (ours.bleu, ours.mean, ours.half_width, ours.p) == (
            theirs.score,
            theirs.mean,
            theirs.ci,
            theirs.p_value,
        )
    assert found[1].bleu == sacrebleu.corpus_bleu(GOOD, [REFERENCES]).score
    assert found[0].p is None
    assert found[1].p == pytest.approx(1 / 201)
    assert found[2].p == 1 / 201  # "the same system against itself": sacreBLEU's own rule


def test_one_seed_draws_the_same_and_another_does_not_and_the_environment_stays(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "none")
    first, again, other = (
        paired_bootstrap(BAD, [GOOD], REFERENCES, samples=50, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first[1].mean != other[1].mean
    assert os.environ["SACREBLEU_SEED"] == "none"
    monkeypatch.delenv("SACREBLEU_SEED")
    paired_bootstrap(BAD, [GOOD], REFERENCES, samples=2)
    assert "SACREBLEU_SEED" not in os.environ


def test_the_tokenisation_is_that_which_is_asked_for():
    (whole,) = paired_bootstrap(GOOD, [], REFERENCES, tokenizer="char", samples=2)
    assert whole.bleu == sacrebleu.corpus_bleu(GOOD, [REFERENCES], tokenize="char").score


def test_outputs_that_cannot_be_compared_are_reported(golden):
    with golden.raises(StatisticsError):
        paired_bootstrap(GOOD, [BAD[1:]], REFERENCES)
    with golden.raises(StatisticsError):
        paired_bootstrap([], [], [])
    with golden.raises(StatisticsError):
        paired_bootstrap(GOOD, [BAD], REFERENCES, seed=0)
