"""A p and a share of variance as tables and figures write them."""

from __future__ import annotations


def format_p(p: float) -> str:
    """Return a p as a table prints it: `.03`, `< .001`; `< .05` where rounding would give .05."""
    if p < 0.001:
        return "< .001"
    if 0.0495 <= p < 0.05:
        return "< .05"
    return f"{p:.3f}".rstrip("0").lstrip("0") if p < 0.9995 else "1"


def format_share(share: float) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.1f} %"


def effect_words(p: float | None, share: float | None) -> str:
    """Return what a figure writes beside a factor: `η² 30.4 %, p < .001`, without what is not known."""
    told = [f"η² {format_share(share)}"] if share is not None else []
    if p is not None:
        text = format_p(p)
        told.append(f"p {text}" if text.startswith("<") else f"p = {text}")
    return ", ".join(told)
