"""The code of what a script or a notebook's cell registers: its text."""

from __future__ import annotations

import hashlib
import linecache
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, NamedTuple

SCRIPT: Final = "the script "
"""The start of the owner of what a script registers; the name of its file follows."""

CELL: Final = "the notebook cell of "
"""The start of the owner of what a notebook's cell registers; the kind and the name of the item follow."""

UNSAVED: Final = "the unsaved code of "
"""The start of the owner of what other code without a file registers, as that of `python -c`."""


class InlineCode(NamedTuple):
    """The owner of what a script or a cell registers, and the SHA-256 of its whole text.

    `owner` stays the same after an edit. `run` is one object for all items that one run registers.
    """

    owner: str
    digest: str
    run: object


def read_inline_code(item: str, frame: FrameType) -> InlineCode:
    """Read the code of the frame that registers an item, such as `metric confidence`."""
    names = frame.f_globals
    while frame.f_back is not None and frame.f_back.f_globals is names:
        frame = frame.f_back  # up to the statement of the script or cell
    file = frame.f_code.co_filename
    linecache.checkcache(file)  # a file that was run before may have been edited since
    text = "".join(linecache.getlines(file)) or _compiled_text(frame.f_code)
    if Path(file).is_file() and not Path(file).parent.name.startswith("ipykernel_"):  # cells under a debugger
        owner = f"{SCRIPT}{Path(file).name}" if names.get("__name__") == "__main__" else Path(file).name
    else:
        is_unsaved = file.startswith(("<stdin>", "<string>", "<python-input"))
        owner = f"{UNSAVED if is_unsaved else CELL}{item}"
    run: object = frame if frame.f_code.co_name.startswith("<") else object()
    return InlineCode(owner, hashlib.sha256(text.encode()).hexdigest(), run)


def _compiled_text(code: CodeType) -> str:
    """Return a text for code without source, such as that of `python -c`. It is the same in all processes."""
    constants = (sorted(each, key=repr) if isinstance(each, frozenset) else each for each in code.co_consts)
    texts = [_compiled_text(each) if isinstance(each, CodeType) else repr(each) for each in constants]
    return repr((code.co_code, code.co_names, code.co_varnames, texts))
