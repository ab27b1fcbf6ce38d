"""Compiling with LaTeX, where it is installed."""

import shutil
import subprocess

import pytest


def compile_latex(folder, text, *packages):
    """Compile a document twice in a folder and return its log; skip the test without these packages."""
    find = shutil.which("kpsewhich")
    if find is None or shutil.which("pdflatex") is None or not all(map(_is_installed, packages)):
        pytest.skip(f"needs pdflatex with {' and '.join(packages)}")
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(2):
        run = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=600)
        assert run.returncode == 0, run.stdout.decode(errors="replace")[-2000:]
    return (folder / "paper.log").read_text(encoding="utf-8", errors="replace")


def _is_installed(package):
    command = ["kpsewhich", f"{package}.sty"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
