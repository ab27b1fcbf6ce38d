"""Tests of claims against the results.

A claim is confirmed, refuted or undecided. `cell_values` reads the results of cells. `checked_comparison` has
a comparison's values, what is missing of them, and its tests by `hypothesis_test`. `check` judges all claims
of a study by them and names their comparisons. `verdicts` are the outcome. `terminal` formats them.
"""
