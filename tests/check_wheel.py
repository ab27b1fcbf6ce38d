"""Build the wheel from a source distribution, install it into a clean environment, and use it there.

Run by `make wheel`; not a pytest file, since it installs every dependency anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from study_texts import study_text

ROOT = Path(__file__).parent.parent
RECIPE = "4 * (sa + highway_conv(k=20) >> ff(512))"
STUDY = study_text(
    study={"title": "Two mixers on one task"},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    task={"name": "not"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "steps_per_epoch": 5},
    factors={"mixer": ["sa(heads=2, head_width=8)", "conv(k=3)"]},
    table=[{"name": "reached", "rows": "mixer", "columns": "seed", "value": "max_length"}],
)


def main() -> None:
    """Raise CalledProcessError or AssertionError if the wheel does not work by itself."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # of a build with files that are gone since
        call(sys.executable, "-m", "build", "--outdir", str(home), str(ROOT), cwd=home)
        wheel = next(home.glob("*.whl"))
        venv.create(home / "clean", with_pip=True)
        python, command = home / "clean/bin/python", str(home / "clean/bin/activemem")
        install = [str(python), "-m", "pip", "install", "--quiet"]
        call(*install, "--constraint", str(ROOT / "constraints.txt"), str(wheel), cwd=home)
        where = call(str(python), "-c", "import activemem; print(activemem.__file__)", cwd=home)
        assert Path(where.strip()).is_relative_to(home), f"expected activemem from the wheel, got {where}"
        assert (Path(where.strip()).parent / "grammar" / "block_names.pyi").exists(), (
            "expected the blocks' types"
        )
        show = [command, "recipe", "show", RECIPE, "--d-model", "128", "--length", "40", "--vocab", "20"]
        assert "highway_conv(k=20)" in call(*show, cwd=home)
        (home / "tiny.toml").write_text(STUDY, encoding="utf-8")
        call(command, "study", "run", "tiny.toml", "--local", cwd=home)
        table = call(command, "table", "render", "tiny", "--format", "csv", cwd=home)
        assert "conv(k=3)" in table, f"expected a row of conv(k=3), got:\n{table}"
        if (ROOT / ".git").exists():
            shown = call(command, "table", "render", "tiny", cwd=home)
            assert re.search(r"activemem \S+ \([0-9a-f]{7}", shown), f"expected the commit, got:\n{shown}"
        assert "algorithmic" in call(command, "study", "list", cwd=home)
        designs = call(command, "list", "designs", "--plugin", "sampled_designs", cwd=home)
        assert "plackett_burman" in designs, f"expected the plug-ins of the package, got:\n{designs}"
        assert "paradise-lost: as published" in call(command, "data", "check", "paradise-lost", cwd=home)
        page = home / call(command, "report", "build", "tiny", cwd=home).strip()
        assert "conv(k=3)" in page.read_text(encoding="utf-8"), "expected the report's templates in the wheel"
        files = Path(where.strip()).parent / "reporting" / "serve"
        for name in ("live.js", "shell.html"):
            assert (files / "templates" / name).exists(), f"expected {name} of served pages in the wheel"
    print("the wheel works in a clean environment")  # noqa: T201 -- a script's one line of output


def call(*command: str, cwd: Path) -> str:
    """Run a command without this process's Python settings; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


if __name__ == "__main__":
    main()
