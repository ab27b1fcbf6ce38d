"""How the program begins: Ctrl-C during its imports, and streams that are closed."""

import shlex
import signal
import subprocess
import sys

import pytest

INTERRUPTED = """
import os, signal, sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
from activemem.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["activemem.cli.app", "activemem.cli.commands", "typer"])
def test_ctrl_c_before_a_command_begins_ends_the_program_without_a_traceback(module, run_python):
    done = run_python("-c", INTERRUPTED.format(module=module))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_with_closed_streams_does_its_work(closed, tmp_path):
    command = shlex.join([sys.executable, "-m", "activemem", "study", "new", "mine.toml"])
    done = subprocess.run(f"{command} {closed}", shell=True, cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "mine.toml").is_file()
