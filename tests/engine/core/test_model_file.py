"""Model files restore the saved data or report a fault, and execute no code."""

import json
import random
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save

from activemem import ActivememError
from activemem.engine import ModelFileError
from activemem.engine.core.models import ModelFile, build_model, read_model_file, rebuild, write_model_file
from activemem.storage.checksums import add_model_checksum, encode_metadata
from activemem.studies import Trial

SYMBOLS = {"kind": "characters", "content": "YWJj", "separated": False}


@pytest.fixture
def trial(settings):
    return Trial(study="tiny", levels={"mixer": "conv", "seed": 0}, settings=settings())


@pytest.fixture
def model(trial):
    return build_model(trial.settings, torch.Generator().manual_seed(1))


@pytest.fixture
def file(trial, model):
    return ModelFile(
        trial=trial,
        weights=model.state_dict(),
        symbols=SYMBOLS,
        metrics={"loss": 0.25, "bleu": float("nan")},
        version="0.1.0",
        commit="1234567",
    )


@pytest.fixture
def path(tmp_path, file):
    path = tmp_path / "kept" / "model.safetensors"
    write_model_file(path, file)
    return path


def rewrite(path, weights, **changes):
    """Write a model file with a changed description."""
    with safe_open(path, "pt") as opened:
        description = json.loads(opened.metadata()["activemem"])
    del description["crc32"]
    path.write_bytes(add_model_checksum(save(weights, metadata=encode_metadata(description | changes))))


def test_weights_and_gradients_larger_than_the_memory_are_refused(settings):
    with pytest.raises(ActivememError, match=r"ff\(1000000\) take 2\.6 TB, and this machine has .* memory"):
        build_model(settings("10000 * ff(1000000)"), torch.Generator())


def test_a_model_comes_back_as_it_was(path, file, model):
    read = read_model_file(path)
    assert (read.trial, read.symbols) == (file.trial, SYMBOLS)
    assert (read.version, read.commit, str(read.metrics)) == ("0.1.0", "1234567", str(file.metrics))
    inputs = torch.randint(2, (2, 7))
    assert torch.equal(rebuild(read)(inputs), model.eval()(inputs))


def test_the_same_model_gives_the_same_bytes(path, file):
    first = path.read_bytes()
    write_model_file(path, file)
    assert path.read_bytes() == first


def test_other_programs_read_the_weights(path, model):
    found = load_file(path)
    assert found.keys() == model.state_dict().keys()
    assert all(torch.equal(found[name], weight) for name, weight in model.state_dict().items())


def test_weights_that_are_shared_are_kept_once(path, file):
    shared = torch.randn(20, 30)
    weights = {"embedding": shared, "output": shared, "part": shared[:, ::2], "empty": torch.zeros(0)}
    write_model_file(path, replace(file, weights=weights))
    assert sorted(load_file(path)) == ["embedding", "empty", "part"]
    read = read_model_file(path).weights
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[name], weight) for name, weight in weights.items())


def test_every_flipped_bit_is_found(path):
    data, draw = path.read_bytes(), random.Random(5)
    header = 8 + int.from_bytes(data[:8], "little")
    places = [*range(60), *draw.sample(range(60, header), 100), *draw.sample(range(header, len(data)), 100)]
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << draw.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(ModelFileError):
            read_model_file(path)
    for end in (0, 7, 40, header, len(data) - 1):
        path.write_bytes(data[:end])
        with pytest.raises(ModelFileError):
            read_model_file(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"trial": {"study": "x"}},
        {"trial": []},
        {"aliases": {"a": "b"}},
        {"aliases": None},
    ],
)
def test_a_file_of_somebody_else_is_refused_with_a_reason(path, file, changes, golden):
    rewrite(path, dict(file.weights), **changes)
    with golden.raises(ModelFileError):
        read_model_file(path)


@pytest.mark.parametrize("owner", ["gone.py", "the notebook cell of loss term gone"])
def test_a_model_of_plug_ins_that_are_not_loaded_names_them(path, file, owner, golden):
    trial = json.loads(file.trial.to_json())
    settings = json.loads(trial["settings"])
    settings["train"]["loss_terms"] = [{"name": "gone", "weight": 1.0}]
    settings["code"] = {"loss term gone": f"{owner} 0123456789abcdef"}
    rewrite(path, dict(file.weights), trial={**trial, "settings": json.dumps(settings)})
    with golden.raises(ModelFileError):
        read_model_file(path)


def test_a_recipe_that_needs_more_weights_than_there_are_builds_nothing(path, file):
    settings = file.trial.settings
    huge = settings.model_copy(update={"model": settings.model.model_copy(update={"d_model": 20_000})})
    trial = Trial(study=file.trial.study, levels=file.trial.levels, settings=huge)
    rewrite(path, dict(file.weights), trial=json.loads(trial.to_json()))
    with pytest.raises(ModelFileError, match=r"^expected [\d,]+ parameters, got [\d,]+$"):
        rebuild(read_model_file(path))


def test_weights_of_another_shape_are_refused(file):
    weights = {name: torch.cat([weight, weight]) for name, weight in file.weights.items()}
    with pytest.raises(ModelFileError, match="size mismatch"):
        rebuild(replace(file, weights=weights))


OTHER_VALUES = [
    None,
    [],
    {},
    "x",
    -1,
    "\x1b[31mred",
    {"\x1b[31m": 1},
    [["\x1b[31m"]],
    "x" * 10_000,
    10**400,
    1e999,
    [1, 2],
    {"a": {}},
]


@pytest.mark.parametrize("key", ["format", "trial", "metrics", "symbols", "aliases", "version", "commit"])
def test_a_description_that_activemem_never_writes_is_a_fault_of_the_file(path, file, key):
    refused = 0
    for other in OTHER_VALUES:
        rewrite(path, file.weights, **{key: other})
        try:
            read_model_file(path)
        except ModelFileError as error:
            refused += 1
            assert str(error).startswith(f"{path}: ")
            assert len(str(error)) < 400
    assert refused >= len(OTHER_VALUES) - 4  # an empty object, for example, is a valid value of some keys


@pytest.mark.parametrize("key", ["study", "levels", "settings"])
def test_a_trial_of_a_description_that_activemem_never_writes_is_a_fault_of_the_file(path, file, key):
    trial = json.loads(file.trial.to_json())
    deep = ["[" * 100_000, '{"model":' * 2000 + "1" + "}" * 2000, "9" * 5000]
    for other in (*OTHER_VALUES, {"mixer": None}, *(deep if key == "settings" else ())):
        rewrite(path, file.weights, trial={**trial, key: other})
        try:
            assert repr(read_model_file(path).trial)
        except ModelFileError as error:
            assert str(error).startswith(f"{path}: ")
            assert len(str(error)) < 400
        else:
            assert isinstance(other, str if key == "study" else dict)
