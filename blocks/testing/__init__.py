"""A block conforms when it keeps its contract: the suites that anybody's blocks can run."""
