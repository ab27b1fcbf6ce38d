"""BLEU, also by length, and perplexities."""

import math

import pytest
import sacrebleu

from activemem.engine.decoding.measures import bleu, bleu_by_length

REFERENCES = ["The cat sat on the mat.", "It is raining again, isn't it?", "Nobody knows why the dog barks."]
HYPOTHESES = ["The cat sat on the mat.", "It rains again, isn't it?", "Nobody knows why the dogs bark."]


def test_bleu_is_that_of_sacrebleu_with_its_signature():
    found = bleu(HYPOTHESES, REFERENCES)
    assert found.score == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert 30 < found.score < 90
    assert found.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_bleu_of_the_references_is_100_and_of_nothing_0():
    assert bleu(REFERENCES, REFERENCES).score == pytest.approx(100)
    assert bleu([""] * 3, REFERENCES).score == 0


def test_bleu_by_hand():
    found = bleu(["a b c d e"], ["a b c d f"]).score
    precisions = (4 / 5, 3 / 4, 2 / 3, 1 / 2)  # of 1 to 4 words in a row
    assert found == pytest.approx(100 * math.prod(precisions) ** 0.25)


def test_bleu_by_length_has_1_to_10_words_together_then_11_to_20():
    assert bleu_by_length(HYPOTHESES, REFERENCES, [10, 11, 1]) == {
        "1-10": bleu(HYPOTHESES[::2], REFERENCES[::2]).score,
        "11-20": bleu(HYPOTHESES[1:2], REFERENCES[1:2]).score,
    }
