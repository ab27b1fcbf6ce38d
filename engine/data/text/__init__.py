"""Text corpora: tokenised once, and batched so that every token of a split is scored exactly once.

`corpus` opens the tokens of a text. `tokenization` encodes its bytes, with `subwords` for SentencePiece, and
`symbols` has other tokenizers, and decodes tokens. `batches` yields endless streams, packed pieces or whole
lines.
"""
