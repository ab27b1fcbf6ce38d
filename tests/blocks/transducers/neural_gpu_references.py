"""Reference implementation of the Neural GPU family: loops over positions, columns and taps.

An image is (length, width, maps); the whole tape is kept, and convolved at every step.
"""

import torch

from activemem.blocks.testing.references import register_reference

from ..equations.common import hardsig


def convolve(weight, image):
    """Convolve an image with weights (outputs, k across, k along, inputs), zero-padded."""
    length, width, _ = image.shape
    kernel = weight.shape[1]
    before = (kernel - 1) // 2
    result = image.new_zeros(length, width, len(weight))
    for i in range(length):
        for c in range(width):
            for a in range(kernel):
                for b in range(kernel):
                    row, column = i + a - before, c + b - before
                    if 0 <= row < length and 0 <= column < width:
                        result[i, c] += weight[:, b, a] @ image[row, column]
    return result


def cgru_step(cell, image, tape=None):
    """Return one CGRU step; with a tape, the decoder's."""
    weights = [*cell.gates.chunk(2), cell.candidate]
    biases = [*cell.gates_bias.chunk(2), cell.candidate_bias]
    tapes = [None] * 3 if tape is None else cell.tape.chunk(3)
    added = [0.0 if w is None else convolve(w, tape) for w in tapes]
    u = hardsig(convolve(weights[0], image) + added[0] + biases[0])
    r = hardsig(convolve(weights[1], image) + added[1] + biases[1])
    return u * image + (1 - u) * torch.tanh(convolve(weights[2], r * image) + added[2] + biases[2])


def apply_linear(linear, x):
    return x if linear is None else x @ linear.weight.T


def layer_norm(norm, x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + norm.eps) * norm.weight + norm.bias


def encode_image(reader, source, length):
    """Return the image after `length` steps; source (n, inputs)."""
    if reader.norm is None:
        start = apply_linear(reader.entry, source)
        image = start.new_zeros(length, reader.width, start.shape[1])
        image[: len(source), 0] = start
    else:
        image = source.new_zeros(length, reader.width, source.shape[1])
        image[: len(source), 0] = source
        image = layer_norm(reader.norm, image @ reader.entry.weight.T + reader.entry.bias)
    if reader.first is not None:
        image = cgru_step(reader.first, image)
    for _ in range(length):
        for cell in reader.stack.units:
            image = cgru_step(cell, image)
    return image


@register_reference("neural_gpu")
def neural_gpu(model, source, target, **_):
    return encode_image(model.reader, source, max(len(source), len(target)))[: len(target), 0]


@register_reference("markov_neural_gpu")
def markov_neural_gpu(model, source, target, **_):
    return torch.cat([neural_gpu(model, source, target), target], 1)


@register_reference("extended_neural_gpu")
def extended_neural_gpu(model, source, target, **_):
    image = encode_image(model.reader, source, max(len(source), len(target)))
    tape, outputs = torch.zeros_like(image), []
    for t in range(len(target)):
        if t > 0:
            tape = tape.clone()
            tape[t - 1, : tape.shape[1] if model.everywhere else 1] = apply_linear(model.written, target[t])
        for cell in model.decoder.units:
            image = cgru_step(cell, image, tape)
        outputs.append(image[t, 0])
    return torch.stack(outputs)
