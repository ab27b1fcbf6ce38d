"""The text of a new study file: a small working study with a comment at each key."""

from __future__ import annotations

import json

from .study import load_study

_TEXT = '''\
# The question of this study, in a sentence. Reports begin with this comment.

[study]
name = {name}    # results are stored and found under this name
title = "Attention, convolution and their sum"

[model]
recipe = "2 * ({{mixer}} >> ff(64))"    # {{mixer}} is filled with each level of the factor below
d_model = 32    # width of the model

[task]
name = "reverse"    # all tasks: activemem list tasks; the keys of a task: activemem show NAME

[train]
optimizer = {{ name = "adam", lr = 2e-3 }}
epochs = 20    # each ends with an evaluation and a checkpoint; all other keys: activemem study show FILE

# All combinations of levels are trained: 3 mixers x 2 seeds = 6 trials.
[factors]
mixer = [
    "sa(heads=2, head_width=16)",
    "conv(k=5)",
    "sa(heads=2, head_width=16) + conv(k=5)",    # the sum of two blocks
]
seed = [0, 1]

# A table of means over seeds: activemem table render NAME
[[table]]
name = "lengths"
rows = "mixer"
value = "max_length"    # all metrics: activemem list metrics

# A statement that the results confirm, refute or leave undecided: activemem claim check NAME
[[claim]]
name = "convolution helps attention"
holds = """
max_length[mixer=sa(heads=2, head_width=16) + conv(k=5)]
    > max_length[mixer=sa(heads=2, head_width=16)]"""
'''


def new_study_text(name: str) -> str:
    """Return the text of a new study with this name; raise StudyError for an invalid name."""
    text = _TEXT.format(name=json.dumps(name, ensure_ascii=False))
    load_study(text)
    return text
