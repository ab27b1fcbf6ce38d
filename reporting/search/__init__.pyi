from .noise import chance_lead as chance_lead
from .noise import find_plateau as find_plateau
from .noise import measure_noise as measure_noise
from .promotion import PromotionError as PromotionError
