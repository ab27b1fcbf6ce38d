from .display import STOPPING_MESSAGE as STOPPING_MESSAGE
from .display import Display as Display
from .display import live_display as live_display
