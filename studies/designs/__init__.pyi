from .grid import Grid as Grid
