"""Steps of building the package, which write the commit of the code into it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent.parent


class SdistWithCommit(sdist):
    """The step that collects the sources. It adds the commit, for the wheel that is built from them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the sources, and write the commit if they are those of a clone."""
        super().make_release_tree(base_dir, files)
        _write_commit(Path(base_dir))


class BuildWithCommit(build_py):
    """The step that copies the package. It adds the commit, which rows of results record."""

    def run(self) -> None:
        """Copy the package, and write the commit, except into an editable installation."""
        super().run()
        if not self.editable_mode:
            _write_commit(Path(self.build_lib, "activemem"))


def _write_commit(folder: Path) -> None:
    """Write the commit of the clone, or the one that the source distribution has."""
    # loaded by its path, since the package needs torch
    spec = spec_from_file_location("commit", ROOT / "engine" / "trial" / "commit.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    if (found := module.commit()) is not None:
        (folder / module.BUILT).write_text(found, encoding="ascii")
