"""Readers of the user's own data files.

Faults are reported with file, line and column. `own_corpus` reads the table `corpus = { … }` and the key
`tokenizer`. `texts` reads a text, or the shards of a large one; `tables` reads labelled sequences and
sentence pairs, and `tokenizers` the files of pretrained tokenizers. `files` finds the files of a path and
reads each once, `formats` reads their rows, `rows` checks the values, and `summary` has the facts for a plan.
`published_files` reads the numbers of papers.
"""
