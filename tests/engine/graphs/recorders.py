"""What records on a GPU, on a CPU: work is done to be recorded, and again to be replayed; what is refused."""

import torch


class Recorder:
    """Records, and counts what it has recorded and replayed."""

    def __init__(self):
        self.recorded = self.replayed = 0

    def __call__(self, work, generators=()):
        self.recorded += 1
        before = [generator.get_state() for generator in generators]
        with torch.random.fork_rng():
            work()
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)

        def replay():
            self.replayed += 1
            work()

        return replay


def refuse(work, generators=()):
    """Records nothing."""
    del work, generators
    raise RuntimeError("operation not permitted when stream is capturing\nand more")


class NormOfSome(torch.nn.Module):
    """A norm for sequences of some lengths alone; the others are left as they are."""

    def __init__(self, norm, lengths):
        super().__init__()
        self.norm, self.lengths = norm, lengths

    def forward(self, x):
        return self.norm(x) if x.shape[1] in self.lengths else x
