"""Random streams on devices: restored on the same kind, or continued on another kind."""

import torch

from activemem.engine.core.process import DeviceStream

CPU = torch.device("cpu")


def draw(stream):
    with stream.in_process():
        return torch.rand(3)


def test_a_stream_is_independent_and_resumes_from_its_state():
    stream, other = DeviceStream(CPU, 1), DeviceStream(CPU, 2)
    before = torch.get_rng_state()
    first = draw(stream)
    other.state = stream.state
    assert torch.equal(draw(stream), draw(other))
    assert not torch.equal(first, draw(stream))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_stream_resumes_from_that_of_another_kind_of_device():
    of_gpu = torch.tensor([7, *[0] * 7, 12, *[0] * 7], dtype=torch.uint8)  # a seed and an offset
    streams = [DeviceStream(CPU, seed) for seed in range(2)]
    for stream in streams:
        stream.state = of_gpu
    assert torch.equal(*map(draw, streams))
    streams[0].state, streams[1].state = of_gpu, of_gpu.flip(0)
    assert not torch.equal(*map(draw, streams))
