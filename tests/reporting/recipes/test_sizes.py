"""Descriptions of the sizes behind a recipe's numbers."""

import pytest

from activemem.grammar import analyse, configure
from activemem.reporting.recipes.breakdown import describe_sizes


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        ({"vocab": 7}, {}, "width 16, vocab 7, pre-norm, 40 tokens, batch 8, dropout 0.1"),
        (
            {"vocab": 7, "norm": "post", "tied": True},
            {},
            "width 16, vocab 7, post-norm, tied, 40 tokens, batch 8, dropout 0.1",
        ),
        (
            {"columns": 2, "targets": 1, "norm": "none", "residual": False, "dropout": 0.0},
            {},
            "width 16, no norms, no residuals, 40 tokens, batch 8, dropout 0",
        ),
        (
            {"vocab": 70, "cutoffs": (10, 20), "attention_dropout": 0.3, "embedding_dropout": 0.2},
            {"past": 1 << 30},
            "width 16, vocab 70, pre-norm, 3 clusters, 40 tokens of a stream, batch 8, dropout 0.1, "
            "attention dropout 0.3, embedding dropout 0.2",
        ),
    ],
)
def test_sizes_say_all_that_the_figures_depend_on(settings, more, words):
    analysis = analyse("sa", configure(d_model=16, **settings), length=40, **more)
    assert describe_sizes(analysis, 8) == words
