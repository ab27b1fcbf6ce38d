from .breakdown import describe_sizes as describe_sizes
