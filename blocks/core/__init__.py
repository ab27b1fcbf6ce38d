"""What every block is made of: abstract classes live here alone, and nothing here knows a single block."""
