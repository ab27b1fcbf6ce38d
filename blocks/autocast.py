"""Numbers that keep their precision, whatever is asked for around them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """A context in which operations on a device have the precision of their inputs.

    Autocast does not know the device whose tensors have shapes and no values.
    """
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)
