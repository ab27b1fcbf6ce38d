"""Corpora, read once into files of tokens; every token of a split is scored exactly once.

`text` is for language models, `sentence_pairs` for translation, `treebanks` for parsing, `labelled_sequences`
for sequences with labels. `vocabularies` number the symbols of sentences, and `token_files` keep the numbers.
`prepared_lengths` says how long sequences are.
"""
