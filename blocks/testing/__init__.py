"""Conformance suites for built-in and plug-in blocks.

`conformance` checks every block, and `frame_conformance` norms and positions. `plugin_checks` checks a block
of a plug-in before it is trained. `references` has the slow references, and `fixtures` makes blocks and
sequences for tests.
"""
