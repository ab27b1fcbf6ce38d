from .pieces import MAX_UNFUSED_BF16_LENGTH as MAX_UNFUSED_BF16_LENGTH
from .pieces import MAX_UNFUSED_LENGTH as MAX_UNFUSED_LENGTH
from .pieces import window_products as window_products
