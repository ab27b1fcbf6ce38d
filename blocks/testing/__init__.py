"""Conformance suites that anyone's blocks can run.

`conformance` has the checks of every block, and `transducer_conformance` those of transducers;
`norm_conformance` and `position_conformance` are for norms and positions. `module_checks` has the checks
that all of them share. `references` holds the slow references, and `fixtures` makes blocks and sequences
for tests.
"""
