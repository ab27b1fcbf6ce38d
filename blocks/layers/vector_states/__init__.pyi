from .scans import read_states as read_states
from .scans import scan as scan
