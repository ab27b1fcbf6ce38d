"""Conformance suites that anyone's blocks can run.

`conformance` has the checks of every block, `transducer_conformance` those of transducers, and
`frame_conformance` those of norms and positions; `module_checks` has the checks that all of them share.
`references` holds the slow references, and `fixtures` makes blocks and sequences for tests.
"""
