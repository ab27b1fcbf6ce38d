"""The way of one trial from its checkpoint to its row, whatever happens to it.

`resumable_attempt` is the state machine of an attempt, `training` the training loop and `evaluation` what
follows each epoch, the end of a training included. `claims` ensure that no other process trains the trial.
`checkpoints` are what it resumes from, `crash_report` says how its process died, `memory_retries` tries it
with less memory, `outcome` is what is stored. `machine_failures` are no fault of the trial.

`schedules` and `precision` are choices of [train]. `training_parts` has its optional parts: loss terms,
callbacks and measures of gradients. They change no bit of a training that does not ask for them. `leaks`
finds models that see their future, and `provenance` records where a result comes from. `conformance` checks
loss terms and callbacks.
"""
