"""Texts of the product as a test saw them, in a file beside the test that a person has read.

`test_study.txt` holds the texts of `test_study.py`, each under the name of its test. A text that is
missing is added, and its test fails, so that someone reads it. After a change that is meant, delete the
file, run its tests, heavy ones as well, and read the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path

import pytest

HEADING = "=== "
ROOT = Path(__file__).parent.parent


def read_texts(path: Path) -> dict[str, str]:
    """Return the texts of a golden file by the name of their test; none without a file."""
    if not path.exists():
        return {}
    sections = path.read_bytes().decode().removeprefix(HEADING).removesuffix("\n").split(f"\n{HEADING}")
    return dict(section.split("\n", 1) for section in sections)


class GoldenTexts:
    """The golden texts of one test, in the order in which it compares them."""

    def __init__(self, path: Path, test: str, folder: str | None) -> None:
        self._path = path
        self._test = test
        self._folder = folder
        self._compared = 0
        self.added: list[str] = []

    def __call__(self, seen: str | Sequence[str]) -> None:
        """Compare a text, or the items of a list, with the next golden text of this test."""
        text = seen if isinstance(seen, str) else "\n".join(f"- {item}" for item in seen)
        if self._folder is not None:
            text = text.replace(self._folder, "TMP_PATH")
        text = text.replace(str(ROOT), "ROOT")
        assert f"\n{HEADING}" not in f"\n{text}"
        self._compared += 1
        name = self._test if self._compared == 1 else f"{self._test} ({self._compared})"
        texts = read_texts(self._path)
        if name not in texts:
            with self._path.open("ab") as file:
                file.write(f"{HEADING}{name}\n{text}\n".encode())
            self.added.append(name)
        elif text != texts[name]:
            lines = unified_diff(texts[name].split("\n"), text.split("\n"), "golden", "seen", lineterm="")
            pytest.fail("\n".join((f"{self._path.name} has another text:", *lines)), pytrace=False)

    @contextmanager
    def raises(
        self, expected: type[BaseException] | tuple[type[BaseException], ...]
    ) -> Iterator[pytest.ExceptionInfo]:
        """Expect an exception with the next golden text as its message."""
        with pytest.raises(expected) as raised:
            yield raised
        self(str(raised.value))
