"""The gradients of a step, replayed from a recording, are those that its step computes.

`recorded_gradients` keep a recording for each shape of a batch, and the tensors that it reads and writes;
`graphable` says which trainings can have them, and gives them; `cuda_capture` is the recording on a GPU.
"""
