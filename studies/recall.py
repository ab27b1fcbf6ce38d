"""Studies as they last ran: the store remembers the text of each, and its overrides."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..storage import Store
from .faults import Fault, StudyError
from .study import Study, load


def as_last_run(what: str | None, store: Store, overrides: Sequence[str] = ()) -> Study:
    """The study of that name as it last ran in a store, by default the last that ran.

    A path means the file as it is now; so does a name that has never run here. Further overrides come last.
    """
    name = store.last_study() if what is None else what
    if name is None:
        fault = Fault(message="no study has run here yet; name one, as in: activemem table render NAME")
        raise StudyError(str(store.root), [fault])
    record = None if _is_path(name) else store.recall_study(name)
    if record is None:
        return load(name, overrides)
    return load(record["text"], (*record["overrides"], *overrides))


def _is_path(what: str) -> bool:
    return what.endswith(".toml") or os.sep in what or "/" in what
