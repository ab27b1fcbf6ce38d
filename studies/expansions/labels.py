"""`labels`: factors that only name cells and change no setting.

They are valid in a study whose cells come from the zip design or from `[[cells]]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ..schema.design import DesignReader, Expansion
from ..text.document import Diagnostics


class Labels(Expansion):
    """Expansion that reads `[study] labels`, the factors that only name cells."""

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self:
        return cls()

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        header = reader.header
        reader.check_factor_names("labels", header.labels, reader.names)
        for name in header.labels:
            if name in reader.crossed and (header.design.name != "zip" or name in header.around):
                message = f"{name} is crossed with all factors, so it cannot name single cells"
                text = f'{message}: use design = "zip", or list the cells in [[cells]]'
                reader.diagnostics.report(("study", "labels"), text)
        return {"labels": tuple(dict.fromkeys(name for name in header.labels if name in reader.names))}


EXPANSION = Labels
