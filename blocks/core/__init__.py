"""Parts of every block and model; no module here depends on a specific block.

- `block` has the base class of blocks and the registry of modules.
- `transducer` has the base class of blocks that write a target.
- `residual_stack` joins blocks and can recompute their activations.
- `streaming` reads endless sequences in pieces.
- `initialisation` draws weights, and `correlation` slides them along sequences.
- `torch_modes` turns autocast off and detects transforms.
- `activations`, `dropout`, `normalisation`, `positional_encoding`, `weight_roles`: what their names say.
"""
