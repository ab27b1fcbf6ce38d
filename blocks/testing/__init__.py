"""Conformance suites that anyone's blocks can run.

`conformance` checks every block, `transducer_conformance` transducers, and `frame_conformance` norms and
positions; they share the checks of `module_checks`. `references` holds the slow references, and `fixtures`
makes blocks and sequences for tests.
"""
