"""Ctrl-C while the program is still being imported."""

INTERRUPTED = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "activemem.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from activemem.__main__ import main
main()
"""


def test_ctrl_c_before_a_command_begins_ends_the_program_without_a_traceback(run_python):
    done = run_python("-c", INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
