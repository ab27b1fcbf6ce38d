"""Corpora: read once into token files; every token of a split is scored exactly once.

`text` is for language models, `sentence_pairs` for translation, `treebanks` for parsing, `labelled_sequences`
for classification and tagging. `vocabularies` map symbols to numbers, and `token_files` store these numbers.
"""
