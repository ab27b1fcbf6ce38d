"""Corpora, which are encoded once into token files.

An evaluation scores every token of a split exactly once.

`text` is for language models, `sentence_pairs` for translation, `treebanks` for parsing, `labelled_sequences`
for classification and tagging. `vocabularies` map symbols to numbers, and `token_files` store these numbers.
"""
