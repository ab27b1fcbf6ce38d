"""Scores of outputs, computed like the standard tools: `bleu` of translations, `evalb` of trees."""
