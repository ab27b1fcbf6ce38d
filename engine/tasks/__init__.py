"""What is learned: a task turns a seeded generator into whole batches of inputs and targets."""
