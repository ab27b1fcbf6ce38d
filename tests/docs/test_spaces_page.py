"""`docs/spaces.md`: its Python runs. What it shows of the program is compared in `test_documents`."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_python_of_the_page_runs(program):
    exec(compile(program, "docs/spaces.md", "exec"), {})
