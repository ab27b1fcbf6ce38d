"""The base classes and operations that all blocks and models share.

No module here depends on a specific block.

- `block` has the base class of blocks, their states in endless sequences, and the registry of modules.
- `transducer` has the base class of blocks that write a target.
- `residual_stack` joins blocks, normalises, and can recompute their activations.
- `plugin_parts` builds modules of plug-ins, and refuses those that it has seen before.
- `initialisation` draws weights by their roles, and `correlation` slides them along sequences.
- `operations` has activations, linear maps, softmax, and modes of torch.
- `dropout` drops numbers, and `positions` makes vectors, angles and biases of positions.
"""
