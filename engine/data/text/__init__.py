"""One text: tokenised once, and batched so that every token of a split is scored exactly once.

`corpus` opens the tokens of a text, which `tokenization` makes of its bytes, with `subwords` where pieces are
learnt, and whose `symbols` become text again. `stream_batches` go on where the last ended, `line_batches`
begin anew at each line; `batches` says what both are.
"""
