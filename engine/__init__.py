"""Making it happen: what a trial computes depends on its settings alone, however it is scheduled."""
