"""Everything that a study file can refer to by name.

`tasks` can be learnt, `optimisers` move the weights at the rates of `schedules`, `samplers` choose a
search's points, `metrics` are measured, `train_parts` are those of plug-ins, for which
`registered_settings` has what they share. `published` has the papers' numbers, `datasets` the texts, pairs
and treebanks, and `own_corpora` what is known of those that a study brings along.
"""
