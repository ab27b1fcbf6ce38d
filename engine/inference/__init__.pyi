from .predictions import InputError as InputError
from .text_generation import GenerationError as GenerationError
from .text_generation import Sampling as Sampling
from .trained_model import UseError as UseError
