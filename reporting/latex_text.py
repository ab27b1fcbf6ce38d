"""Text for LaTeX in T1: with special characters escaped, and its width."""

from __future__ import annotations

import unicodedata

from ..diagnostics import replace_unprintable

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "[": "{[}",  # after the end of a line it would begin an option,
    "*": "{*}",  # and this would be one
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "\N{REPLACEMENT CHARACTER}": "?",
    "\N{FRACTION SLASH}": "/",
    "−": r"$-$",
    "√": r"$\surd$",
    "∘": r"$\circ$",
    "⊗": r"$\otimes$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "∞": r"$\infty$",
    "ς": r"$\varsigma$",
    "ϕ": r"$\phi$",
    "′": r"$'$",
    "″": r"$''$",
    "∗": r"$\ast$",
    "—": r"\textemdash{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "€": r"\texteuro{}",
    "µ": r"$\mu$",
}
_GREEK = {
    letter: unicodedata.name(letter).rpartition(" ")[2].replace("LAMDA", "LAMBDA")
    for letter in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
}
_ESCAPES |= {
    letter: rf"$\{name.lower() if letter.islower() else name.title()}$" for letter, name in _GREEK.items()
}

_LETTERS_OF_T1 = "ÆæŒœØøßÐðÞþŁłĐđŊŋ¡¿«»§"
"""What no accent makes and the encoding of fonts that the first line asks for has nevertheless."""


def escape(text: str) -> str:
    """Return the text in characters that LaTeX takes in T1, with special ones escaped."""
    return "".join(map(_escape_character, replace_unprintable(text))).replace("--", "-{}-")


def _escape_character(char: str) -> str:
    """Return one character: as it is, as a command, as what it is made of, and else as its number."""
    if char in _ESCAPES or char.isascii():
        return _ESCAPES.get(char, " " if char.isspace() else char)
    parts = unicodedata.normalize("NFKD", char)
    accents = sum(map(unicodedata.combining, parts)) > 0
    if char in _LETTERS_OF_T1 or (accents and parts[0].isascii() and char <= "\u017f"):
        return char
    mark = {"<super>": "textsuperscript", "<sub>": "textsubscript"}.get(
        unicodedata.decomposition(char).partition(" ")[0]
    )
    if parts != char and not accents:
        made = "".join(map(_escape_character, parts))
        return rf"\{mark}{{{made}}}" if mark else made
    return f"(U+{ord(char):04X})"


_WIDTHS = {
    **dict.fromkeys(" ijltfrI.,:;'|!()[]/-", 3.3),
    **dict.fromkeys("mwMW%@±×−→←≤≥≠≈–…", 8.0),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&=+<>~", 7.0),
}
"""How wide characters are in points at a size of ten, in the wider of Times and Computer Modern."""


def text_width(text: str) -> float:
    """About how wide a text is, in points at a size of ten."""
    return sum(_WIDTHS.get(char, 5.2) for char in text)
