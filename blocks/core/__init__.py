"""Parts of which every block and model is made; no module here knows a single block.

`block` has the base class and the registry of modules, `transducer` the base of those that write a target.
`residual_stack` joins blocks and can recompute their activations, `streaming` reads endless sequences in
pieces, `initialisation` draws weights, `correlation` slides them along sequences, and `torch_modes` asks for
modes of torch. `activations`, `dropout`, `normalisation`, `positional_encoding` and `weight_roles` are what
their names say.
"""
