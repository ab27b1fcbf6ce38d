"""Losses per token and perplexities per word."""

import math

import pytest

from activemem.engine.objectives.text_scores import Likelihood


def test_losses_are_per_token_and_perplexities_per_word():
    found = Likelihood(nats=10 * math.log(2), tokens=8, words=4)
    assert found.loss == pytest.approx(10 * math.log(2) / 8)
    assert found.bits_per_token == pytest.approx(10 / 8)
    assert found.word_perplexity == pytest.approx(2 ** (10 / 4))


def test_a_perplexity_that_no_float_holds_is_infinite_and_that_of_no_words_is_1():
    assert Likelihood(nats=1e9, tokens=1, words=1).word_perplexity == math.inf
    assert Likelihood(nats=705.0, tokens=1, words=1).word_perplexity == pytest.approx(math.exp(705.0))
    assert Likelihood(nats=0.0, tokens=0, words=0).word_perplexity == 1.0
