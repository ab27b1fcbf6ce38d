"""The way of one trial from its checkpoint to its row, whatever happens to it.

`resumable_attempt` is the state machine of an attempt, `training` the training loop and `evaluation` what
follows each epoch, the end of a training included. `claims` ensure that no other process trains the trial.
`checkpoints` are what it resumes from, `last_words` say how its process died, `memory_retries` tries it with
less memory, `outcome` is what is stored. `machine_failures` are no fault of the trial.

`schedules` and `precision` are choices of [train]; `training_parts` are the loss terms, the callbacks and the
measures of gradients that [train] may ask for, and change no bit of a training that does not. `leaks` finds
models that see their future, and `provenance` says where a result comes from. `conformance` checks loss terms
and callbacks.
"""
