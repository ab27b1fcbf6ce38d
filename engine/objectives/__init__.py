"""Objectives, one for each kind of task: data, loss and metrics.

`base` has the interface of objectives. `generated` is for tasks that draw examples, and `regression` for the
long-term problems. `labelled`, `language_modelling` and `seq2seq` read corpora. `text_scores` computes the
likelihood of a text, `separate_documents` that of each document alone, and `generation` scores a model's
outputs. `build` chooses the objective of a trial.
"""
