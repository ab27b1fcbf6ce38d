"""What every part of the engine shares, and none of it depends on a task."""
