from .asha import Fidelity as Fidelity
from .match import nearest_sizes as nearest_sizes
