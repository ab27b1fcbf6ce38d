"""A trial's life from its checkpoint to its stored row, through any failure.

`resumable_attempt` is the state machine of an attempt. `training` has the training loop, and `evaluation`
what follows each epoch, including the end of a training. `claims` ensures that no other process trains the
trial. `checkpoints` stores what it resumes from, `crash_report` records how its process died,
`memory_retries` retries it with less memory, and `outcome` writes its row. `machine_failures` recognises
failures that are not the trial's fault. `schedules` and `precision` implement choices of [train].
`training_parts` has the optional parts of a training: loss terms, callbacks and measures of gradients. They
change no bit of a training that does not use them. `leaks` finds models that see their future, and
`provenance` records where a result comes from. `conformance` checks loss terms and callbacks.
"""
