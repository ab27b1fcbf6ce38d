"""A trial goes from its checkpoint to its row, whatever happens to it.

`claims` make sure that nobody else trains it, `resumable_attempt` runs it epoch by epoch, `training` is all
that its next step depends on, `checkpoints` are what it resumes from when its worker has died, `last_words`
say how that died, and how often it may, `memory_retries` tries it again with less memory, `outcome` is
what is kept of it, and `pruned` the row of a trial which is given up. `schedules` are a choice of [train],
`precision` is what it needs of the device; `leaks` finds models that see their future, `machine_failures` is
what is not the trial's fault, and `provenance` says where a result comes from. `conformance` checks loss
terms and callbacks in any test.
"""
