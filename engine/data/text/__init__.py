"""One text: tokenised once, and batched so that every token of a split is scored exactly once."""
