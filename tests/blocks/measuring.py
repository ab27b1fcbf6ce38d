"""How tests measure what a training step keeps."""

import torch
from torch.nn import functional


def saved_bytes(model, *, batch, length, vocab):
    """The bytes of everything that is saved for the backward pass, parameters left out, each storage once."""
    device = next(model.parameters()).device
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept = {}

    def note(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage
        return tensor

    tokens, targets = (torch.zeros(batch, length, dtype=torch.int64, device=device) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        logits = model.train()(tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    assert loss.requires_grad
    assert logits.shape == (batch, length, vocab)
    return sum(storage.nbytes() for storage in kept.values())
