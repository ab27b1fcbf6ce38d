"""Rows become values, and values become tables, curves, verdicts and pages; nothing here trains or prints."""
