"""A figure is data before it is drawn."""
