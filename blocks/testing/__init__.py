"""A block conforms when it keeps its contract: the suites that anybody's blocks can run.

`conformance` has the checks of every block, and `transducer_conformance` those of transducers;
`norm_conformance` and `position_conformance` are for norms and positions. `module_checks` has what all of
them check. `references` holds the slow references, and `fixtures` makes blocks and sequences for tests.
"""
