from .scan import read_states as read_states
