from .display import STOPPING_MESSAGE as STOPPING_MESSAGE
from .display import Display as Display
