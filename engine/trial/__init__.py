"""Course of a trial, from its checkpoint to its stored row.

It includes failures of every kind. `resumable_attempt` claims a trial, and is the state machine of an
attempt. `training` has the training loop, its learning-rate schedule, counters and time budget. `evaluation`
is what follows each epoch, including the end of a training. `checkpoints` stores what it resumes from, and
`outcome` writes its row. `failures` recognises failures that are not the trial's fault and deaths of
processes, and retries a trial with less memory. `training_parts` has loss terms and callbacks. A training
without them is bit for bit the same as if they did not exist. `conformance` checks them.
"""
