"""`fading_memory`, an average over the sequence with distance-dependent weights, as a block for activemem."""
