"""What a few seeds can tell: estimates, paired tests, corrections and power."""
