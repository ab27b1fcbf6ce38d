"""`fading_memory`: an average of the sequence whose weights fade with distance, as a block for activemem."""
