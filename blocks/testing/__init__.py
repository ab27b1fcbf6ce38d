"""A block conforms when it keeps its contract: the suites that anybody's blocks can run.

`conformance` has the checks of every block, with `step_checks` for those that read in pieces, and
`transducer_conformance` those of transducers; `norm_conformance` and `position_conformance` are for what
stands around blocks. `module_checks` is what all check alike. `references` holds
the slow references that outputs are compared with, and `fixtures` makes blocks and sequences to look at.
"""
