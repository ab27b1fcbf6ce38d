from .noise import chance_lead as chance_lead
from .noise import find_plateau as find_plateau
from .noise import measure_noise as measure_noise
from .noise import noise_floor as noise_floor
from .noise import noise_floors as noise_floors
from .promotion import PromotionError as PromotionError
