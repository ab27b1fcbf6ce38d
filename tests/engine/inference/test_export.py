"""Exported programs for the whole vocabulary; docs/how-to/trained-models.md lists unsupported blocks."""

import re
from pathlib import Path

import pytest
import torch

from activemem import load_model
from activemem.blocks.testing import example_block
from activemem.engine.core import ModelFile, write_model_file
from activemem.engine.inference import ExportError, export
from activemem.engine.trial import Training
from activemem.grammar import Role, lookup, parse, render
from activemem.grammar.vocabulary import VECTOR, builtin_names, export_faults, output_kind
from activemem.studies import Trial
from activemem.studies.schema import TrialSettings

from ...blocks.example_blocks import BLOCKS

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "trained-models.md").read_text(encoding="utf-8")
ROWS = PAGE.split("| blocks | reason |")[1].split("\n\n")[0]
DOCUMENTED = set(re.findall(r"`([^`]+)`", ROWS))

BY_SETTING = {
    "sa(span=…)": "sa(heads=2, head_width=4, span=8)",
    "base_conv(filter=implicit)": "base_conv(k=4, filter=implicit)",
}
"""Blocks that are documented together with a setting, with an example."""

EXPORTED = [
    *(render(example_block(name)) for name in BLOCKS if name not in {*DOCUMENTED, "sa"}),
    "sa(heads=2, head_width=4)",
    "sa(heads=2, head_width=4, pos=rope)",
    "sa(heads=2, head_width=4, pos=alibi)",
    "sa(heads=2, head_width=4, pos=t5, kv_heads=1, qk_norm=rms)",
    "2 * (conv(k=9) + cgru(k=4)) >> mean_pool",
]
NOT_EXPORTED = [
    *(render(example_block(name)) for name in BLOCKS if name in DOCUMENTED),
    *BY_SETTING.values(),
]


def untrained(recipe, folder):
    """Return an untrained model and its file; after a pool the task is a regression."""
    pooled = output_kind(parse(recipe).root) == VECTOR
    train = {"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 2, "epochs": 1, "steps_per_epoch": 1}
    settings = TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8},
            "task": {"name": "recall_addition" if pooled else "reverse"},
            "train": train if pooled else train | {"curriculum": {"start": 5}},
        }
    )
    training, path = Training.begin(settings, torch.device("cpu"), folder), folder / "model.safetensors"
    kept = ModelFile(
        trial=Trial(study="s", levels={}, settings=settings),
        weights=training.weights(),
        symbols=training.objective.symbols(),
        metrics={},
        version="",
        commit=None,
    )
    write_model_file(path, kept)
    return load_model(path), path


def test_the_documented_list_is_that_of_the_vocabulary():
    found = {name for name in builtin_names() if lookup(name).role is Role.TRANSDUCER}
    found |= {name for name in BLOCKS if export_faults(example_block(name))} - {"sa"}
    for setting, block in BY_SETTING.items():
        assert export_faults(parse(block).root)
        found.add(setting)
    assert found == DOCUMENTED
    assert not any(export_faults(parse(recipe).root) for recipe in EXPORTED)


@pytest.mark.parametrize("recipe", ["conv(k=3) >> 2 * (gru + sa(span=8))", "mlstm(heads=2)"])
def test_models_that_cannot_be_exported_are_rejected_at_once(recipe, tmp_path, monkeypatch, golden):
    monkeypatch.setattr(torch.export, "export", None)
    trained, _ = untrained(recipe, tmp_path)
    for name in ("model.pt2", "model.onnx"):
        with golden.raises(ExportError):
            trained.export(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_folder_has_the_present_weights_of_a_model_that_was_trained_further(tmp_path):
    trained, path = untrained("gru", tmp_path)
    same = trained.export(tmp_path / "same").path
    assert (same / "model.safetensors").read_bytes() == path.read_bytes()
    with torch.no_grad():
        for weight in trained.module.parameters():
            weight.add_(1)
    loaded = load_model(trained.export(tmp_path / "tuned").path)
    for name, weight in trained.module.state_dict().items():
        assert torch.equal(loaded.module.state_dict()[name], weight), name
    trained.module.half()
    halves = load_model(trained.export(tmp_path / "halves").path)
    for name, weight in trained.module.state_dict().items():
        assert torch.equal(halves.module.state_dict()[name], weight.float()), name


@pytest.mark.heavy
def test_a_program_with_lengths_distinguishes_padding_from_positions(tmp_path, golden):
    trained, _ = untrained("sa(heads=2, head_width=4) >> persistent_conv(k=4)", tmp_path)
    done = trained.export(tmp_path / "model.pt2", lengths=True)
    program = torch.export.load(done.path).module()
    inputs, lengths = torch.randint(3, (3, 70)), torch.tensor([70, 1, 33])
    together = program(inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = trained.module(inputs[row : row + 1, :length])[0]
        assert torch.allclose(together[row, :length], alone, atol=1e-5)
    with golden.raises(ExportError):
        trained.export(tmp_path / "folder", lengths=True)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", EXPORTED)
def test_all_other_blocks_are_exported(recipe, tmp_path):
    trained, _ = untrained(recipe, tmp_path)
    for lengths in (False, True):
        assert trained.export(tmp_path / "model.pt2", lengths=lengths).difference <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("recipe", NOT_EXPORTED)
def test_blocks_of_the_list_have_no_program_for_all_lengths(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "export_faults", lambda _root: {})
    trained, _ = untrained(recipe, tmp_path)
    with pytest.raises(ExportError, match=r"cannot be exported|differ by"):
        trained.export(tmp_path / "model.pt2")
