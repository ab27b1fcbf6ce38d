"""Conformance suites that anyone's blocks can run.

`conformance` checks every block, and `frame_conformance` norms and positions. `references` holds the slow
references, and `fixtures` makes blocks and sequences for tests.
"""
