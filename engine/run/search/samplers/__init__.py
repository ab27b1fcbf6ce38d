"""Built-in samplers, which propose the points of a search; `../optuna_study.py` makes those of Optuna.

They are `evolution` and `gp_trees`, a Gaussian process over recipes. They depend only on what is in the
store. After a restart, all samplers propose the same points as without the restart.
"""
