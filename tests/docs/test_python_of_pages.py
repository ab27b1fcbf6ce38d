"""Python code on pages runs; its outputs are compared in `test_documents`."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["how-to/module.md", "reference/spaces.md"])
def test_the_python_of_the_page_runs(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    names = {}
    for program in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(compile(program, page, "exec"), names)
