from .breakdown import Sizes as Sizes
from .nearest import format_nearest as format_nearest
