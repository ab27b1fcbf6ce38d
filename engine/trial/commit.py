"""The commit of the code that trains, as rows record it."""

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

_FOLDERS = ("blocks", "cli", "engine", "grammar", "reporting", "storage", "studies", "tracking")
_CODE = (":(glob)*.py", "studies/catalog", *(f"{folder}/*.py" for folder in _FOLDERS))
"""The files of a git clone that count as code, as git patterns: those of the package."""


BUILT = "commit.txt"
"""The file of an installed package with the commit from which it was built."""


@cache
def commit() -> str | None:
    """Return the git commit of activemem's own code, as `describe_code` writes it.

    An installed package has it in a file, if it was built from a clone.
    """
    root = Path(__file__).parents[2]
    built = root / BUILT
    return built.read_text(encoding="ascii") if built.is_file() else describe_code(root)


def describe_code(root: Path) -> str | None:
    """Return the short git commit of a folder; None if the folder is not a git clone.

    If the code differs from the commit, a hash follows, as in 5d02964+a1b2c3d4. The hash covers the names and
    contents of all changed or new Python files in the package's folders, and files in the catalog. Equal
    changes have equal hashes. Tests, documents, results and the user's own files do not count as code.
    """
    if not (root / ".git").exists():
        return None
    try:
        base = _git(root, "rev-parse", "--short=7", "HEAD").decode().strip()
        status = _git(root, "status", "--porcelain", "-z", "--no-renames", "-uall", "--", *_CODE)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    # an entry is two letters for the status, a space, and the path; new files at the top are not ours
    entries = [each for each in status.split(b"\0") if b"/" in each or (each and each[:2] != b"??")]
    changed = sorted(entry[3:] for entry in entries)
    digest = hashlib.sha256()
    for name in changed:
        path = root / os.fsdecode(name)
        # of a removed file only the name is hashed
        content = hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""
        digest.update(name + b"\0" + content)
    return f"{base}+{digest.hexdigest()[:8]}" if changed else base


def _git(root: Path, *arguments: str) -> bytes:
    words = ["git", "--no-optional-locks", *arguments]
    return subprocess.run(words, cwd=root, capture_output=True, check=True, timeout=10).stdout
