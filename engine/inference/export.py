"""Export of a trained model as a program that runs without activemem.

Its outputs are compared with those of the model.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from ...blocks import Model
from ...errors import ActivememError
from ...grammar import parse, render
from ...grammar.vocabulary.spec import export_faults
from ...storage.files import replacing
from .answers import Exported
from .hub_folder import write_hub_folder
from .trained_model import TrainedModel

_LENGTHS = (1, 2, 7, 63, 64, 65, 130)
"""Sequence lengths at which a program is compared with its model, besides lengths near the recipe's numbers.
"""

_LONGEST_COMPARED = 512
_EXPORTED_AT = 12
_TOLERANCE = 1e-4
"""The largest accepted difference of outputs, relative to the largest output; programs sum in different
orders."""


class ExportError(ActivememError):
    """Error for an export that is impossible or changes the outputs. The message gives the reason."""


def export_model(trained: TrainedModel, path: Path, *, lengths: bool = False) -> Exported:
    """Export a model to a path, as `TrainedModel.export` describes."""
    match path.suffix:
        case ".pt2":
            module, program = _trace(trained, lengths=lengths)
            with replacing(path) as temporary:
                torch.export.save(program, buffer := io.BytesIO())
                temporary.write_bytes(buffer.getvalue())
                loaded = torch.export.load(io.BytesIO(buffer.getvalue())).module()
                difference = _compare(module, loaded, trained, lengths=lengths)
            return Exported(path=path, difference=difference)
        case ".onnx":
            return _export_onnx(trained, path, lengths=lengths)
        case "" if lengths:
            raise ExportError(
                f"{path}: with lengths, expected a path that ends in .pt2 or .onnx, got a folder"
            )
        case "":
            write_hub_folder(trained, path)
            return Exported(path=path, difference=None)
        case _:
            raise ExportError(
                f"{path}: expected a path that ends in .pt2 or .onnx, or a folder, got {path.suffix}"
            )


def _export_onnx(trained: TrainedModel, path: Path, *, lengths: bool) -> Exported:
    try:
        import onnxruntime  # noqa: PLC0415 -- an extra
        import onnxscript  # noqa: PLC0415, F401 -- as above, torch needs it
    except ImportError as error:
        raise ExportError(f'{error}: pip install "activemem[export]"') from error
    module, program = _trace(trained, lengths=lengths)
    try:
        with _quietly():
            converted = torch.onnx.export(program, dynamo=True, verbose=False)
        assert converted is not None, "torch.onnx.export returns a program"
    except Exception as error:
        raise ExportError(f"{trained.recipe} cannot be converted to ONNX: {_first_line(error)}") from error
    with replacing(path) as temporary:
        data = converted.model_proto.SerializeToString()
        temporary.write_bytes(data)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]

        def run(*inputs: Tensor) -> Tensor:
            given = {name: each.numpy() for name, each in zip(names, inputs, strict=True)}
            return torch.from_numpy(session.run(None, given)[0])

        difference = _compare(module, run, trained, lengths=lengths)
    return Exported(path=path, difference=difference)


def _trace(trained: TrainedModel, *, lengths: bool) -> tuple[Model, ExportedProgram]:
    """Return a model's torch module and its graph; raise ExportError if none is right at every length."""
    module = trained.module
    if not isinstance(module, Model):
        raise ExportError(
            f"{trained.recipe} cannot be exported: expected a model of one sequence, got a sequence-"
            "to-sequence model"
        )
    if faults := export_faults(parse(trained.recipe).root):
        reasons = "; ".join(f"{render(block)}: {reason}" for block, reason in faults.items())
        raise ExportError(
            f"some blocks have no exported program that is valid for every length: {reasons}; "
            "export a folder instead (a path without an ending), which loads where activemem is installed"
        )
    # torch.export treats sizes 0 and 1 as constants, so the example has a larger batch and length
    inputs = _inputs(trained, 2, _EXPORTED_AT, lengths=lengths)
    shapes = ({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO})[: len(inputs)]
    try:
        with torch.no_grad(), _quietly():
            program = torch.export.export(module, inputs, dynamic_shapes=shapes)
    except Exception as error:
        raise ExportError(f"{trained.recipe} cannot be exported: {_first_line(error)}") from error
    # compare before the conversion, which can be very slow
    _compare(module, program.module(), trained, lengths=lengths)
    return module, program


@torch.no_grad()
def _compare(module: Model, program: Callable[..., Tensor], trained: TrainedModel, *, lengths: bool) -> float:
    differences: list[Tensor] = []
    # near numbers in the recipe and the task, such as kernel widths and spans, a block may begin to compute
    # differently
    numbers = re.findall(r"\d+", trained.recipe + trained.file.trial.settings.task.model_dump_json())
    near = {int(number) + step for number in numbers for step in (-1, 0, 1) if len(number) < 4}
    longest = min(_LONGEST_COMPARED, module.config.settings.position_kind.longest or _LONGEST_COMPARED)
    compared = sorted(length for length in near | set(_LENGTHS) if 1 <= length <= longest)
    for place, length in enumerate(compared):
        batch = 1 + place % 3
        inputs = _inputs(trained, batch, length, lengths=lengths)
        expected = module(*inputs)
        try:
            found = program(*inputs)
        except Exception as error:
            raise ExportError(
                f"{trained.recipe} cannot be exported for all lengths: a batch of {batch} with {length} "
                f"positions ends in {_first_line(error)}"
            ) from error
        if lengths and not module.pooled:  # outputs at padding are meaningless
            valid = torch.arange(length) < inputs[1][:, None]
            expected, found = expected[valid], found[valid]
        difference = (found - expected).abs().max()
        differences.append(difference / expected.abs().max() if difference else difference)
    largest = float(torch.stack(differences).max())  # NaN if any difference is NaN
    if not largest <= _TOLERANCE:
        raise ExportError(f"expected the outputs of {trained.recipe}, got some that differ by {largest:.1e}")
    return largest


def _inputs(trained: TrainedModel, batch: int, length: int, *, lengths: bool) -> tuple[Tensor, ...]:
    interface = trained.file.trial.settings.task.interface.model
    generator = torch.Generator().manual_seed(length)
    if interface.columns is not None:
        inputs = torch.randn(batch, length, interface.columns, generator=generator)
    else:
        assert interface.vocab is not None, "inputs are numbers or symbols"
        inputs = torch.randint(interface.vocab, (batch, length), generator=generator)
    if not lengths:
        return (inputs,)
    return inputs, torch.randint(1, length + 1, (batch,), generator=generator)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    # torch's exporters log and print details that are of no use to a user
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
