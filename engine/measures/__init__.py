"""Scores of outputs, by the rules of the tools that papers use: `bleu` of translations, `evalb` of trees."""
