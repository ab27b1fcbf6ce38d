"""No module here knows a single block; abstract classes live here alone.

`block` is the base class and the registry of modules, made by `registry`; `transducer` is the base of those
that write a target. `residual_stack` joins blocks, `streaming` reads endless sequences in pieces,
`initialisation` draws weights, `correlation` slides them along sequences, `torch_modes` asks for transforms,
`activation_checkpointing` computes again what is not kept. `activations`, `dropout`, `normalisation`,
`positional_encoding` and `random_positions` are what their names say.
"""
