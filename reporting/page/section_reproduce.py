"""How to reproduce the results: the commands, and the study file itself.

A study that comes with the package is named; any other is on the page, to be saved.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ...studies.study import Study, find_study_file
from ...studies.text.errors import StudyError
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object]:
    """The commands in their order; the file is part of the page, so that the page is enough."""
    study, packaged = inputs.study, _is_packaged(inputs.study)
    file = study.name if packaged else f"{study.name}.toml"
    overrides = [word for override in study.overrides for word in ("--set", override)]
    commands = [["study", "run", file, *overrides]]
    commands += [["table", "render", study.name, "--published"]] if study.tables else []
    commands += [["curve", "render", study.name]] if study.curves else []
    commands += [["claim", "check", study.name]] if study.claims else []
    commands += [["report", "build", study.name]]
    lines = "\n".join(shlex.join(["activemem", *each]) for each in commands)
    return {"text": study.text, "packaged": packaged, "file": file, "commands": lines}


def _is_packaged(study: Study) -> bool:
    """Whether the package has this very file under the study's name."""
    try:
        return find_study_file(study.name).read_text(encoding="utf-8") == study.text
    except (StudyError, OSError):
        return False
