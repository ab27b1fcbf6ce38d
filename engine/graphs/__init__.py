"""The gradients of a step, replayed from a recording, are those that its step computes.

`recorded_work` keeps a recording for each shape of a batch, so many of all trainings and packs, of which
`recorded_gradients` are those of one training. `graphable` gives them to those that can have them;
`cuda_capture` is the recording on a GPU.
"""
