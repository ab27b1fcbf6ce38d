"""One text: tokenised once, and batched so that every token of a split is scored exactly once.

`corpus` opens the tokens of a text, `tokenization` makes them of its bytes, with `subwords` for learnt
pieces, and `symbols` turns them back into text. `batches` are endless streams, or whole lines.
"""
