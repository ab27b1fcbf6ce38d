"""`labels`: factors that only name cells and change no setting.

They are valid in a study whose cells come from the zip design or from `[[cells]]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..schema.design import DesignReader, Expansion
from ..schema.settings import Names
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel


class LabelSettings(StrictModel):
    """The key of `[study]` that names the labels."""

    labels: Names = ()
    """factors of a `zip` or of `[[cells]]` that only label cells and fill no hole"""


@dataclass(frozen=True)
class Labels(Expansion):
    """Expansion that reads `[study] labels`, the factors that only name cells."""

    names: tuple[str, ...]
    header_keys = LabelSettings

    @classmethod
    def read(cls, diagnostics: Diagnostics) -> Self | None:
        found = diagnostics.validate_keys(LabelSettings, ("study",))
        return None if found is None else cls(found.labels)

    def read_cells(self, reader: DesignReader) -> Mapping[str, Any]:
        header = reader.header
        reader.check_factor_names("labels", self.names, reader.names)
        for name in self.names:
            if name in reader.crossed and (header.design.name != "zip" or name in header.around):
                message = f"{name} is crossed with all factors, so it cannot name single cells"
                text = f'{message}: use design = "zip", or list the cells in [[cells]]'
                reader.diagnostics.report(("study", "labels"), text)
        return {"labels": tuple(dict.fromkeys(name for name in self.names if name in reader.names))}


EXPANSION = Labels
