"""A block conforms when it keeps its contract: the suites that anybody's blocks can run.

`conformance` has the checks of every block, with `step_checks` for those that read in pieces, and
`transducer_conformance` those of transducers; `module_checks` is what both check alike. `references` holds
the slow references that outputs are compared with, and `fixtures` makes blocks and sequences to look at.
"""
