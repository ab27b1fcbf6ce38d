"""Ctrl-C during the imports of the program."""

import signal

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
