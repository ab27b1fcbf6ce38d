from .breakdown import describe_sizes as describe_sizes
from .nearest import format_nearest as format_nearest
