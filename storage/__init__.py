"""What happened: a row is written once, durable the moment its trial ends, and never rewritten."""
