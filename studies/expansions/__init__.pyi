from .fidelity import Fidelity as Fidelity
from .ladder import format_rungs as format_rungs
from .ladder import planned_rungs as planned_rungs
from .match import SizeMatch as SizeMatch
from .match import nearest_sizes as nearest_sizes
