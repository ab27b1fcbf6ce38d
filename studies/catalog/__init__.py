"""Registries of everything that a study file refers to by name.

`tasks` are learnt by models. `optimisers` update the weights at the learning rates of schedules, and
`samplers` choose a search's points. `metrics` are measured, or are costs of a training to a target.
`train_parts` are loss terms and callbacks of plug-ins. `published` has the papers' numbers, `datasets`
has the texts, pairs and treebanks, and `own_corpora` has the facts about a study's own corpora.
"""
