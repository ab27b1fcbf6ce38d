"""A step of building the package, which writes the commit of the code into it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent.parent


class BuildWithCommit(build_py):
    """The step that copies the package. It adds the commit, which rows of results record."""

    def run(self) -> None:
        """Copy the package, and write the commit if this is a clone and no editable installation."""
        super().run()
        # loaded by its path, since the package needs torch
        spec = spec_from_file_location("commit", ROOT / "engine" / "trial" / "commit.py")
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        if not self.editable_mode and (found := module.describe_code(ROOT)) is not None:
            Path(self.build_lib, "activemem", module.BUILT).write_text(found, encoding="ascii")
