"""Text corpora, tokenised and batched.

A text is tokenised once, and every token of a split is scored exactly once.

`corpus` opens the tokens of a text. `batches` yields endless streams, packed pieces or whole lines.
"""
