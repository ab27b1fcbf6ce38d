"""Architecture search and ablation studies of sequence models: attention against active memory."""

__version__ = "0.1.0"
