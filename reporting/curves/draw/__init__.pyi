from .figure import draw as draw
from .panel import make_scale as make_scale
from .panel import place_labels as place_labels
from .panel import spread_labels as spread_labels
from .panel import tick_texts as tick_texts
