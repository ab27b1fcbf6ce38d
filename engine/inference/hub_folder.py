"""Hugging Face Hub folder of a trained model; `transformers` can load a language model from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...storage.files import replacing
from ...studies.catalog.tasks import LanguageModelSettings
from ..core.models import ModelFile, write_model_file
from ..data.text.batches import LINE_START
from ..data.vocabularies.build import text_vocabulary_from_dict

HUB_WEIGHTS = "model.safetensors"
"""The file name of a model in a Hugging Face Hub folder."""

SYMBOLS = "symbols.json"
"""The file name of a language model's symbols."""

_STREAM_TOKENS = 1 << 20
"""The bound that programs see of a model that was trained on a stream, whose positions have no bound."""

CLASSES = "modeling_activemem"
CLASSES_SOURCE = """\
# Loaded by transformers with trust_remote_code=True; activemem must be installed.
from activemem.engine.inference.huggingface import ActivememConfig, ActivememForCausalLM, ActivememTokenizer
"""
"""The file of a Hub folder, by its name without .py, from which transformers imports the classes."""

TOKENIZER_CLASSES = {"AutoTokenizer": [f"{CLASSES}.ActivememTokenizer", None]}
"""The class of the tokenizer, as `tokenizer_config.json` names it."""


def write_hub_folder(file: ModelFile, path: Path) -> None:
    """Write a model's file and its settings in `config.json` to a new folder.

    For a language model, also write the tokenizer and the Python classes that load the model. Raise
    FileExistsError if the path exists.
    """
    if path.exists():
        raise FileExistsError(f"{path}: expected a new folder, got an existing one")
    with replacing(path) as temporary:
        temporary.mkdir()
        write_hub_files(file, temporary)


def write_hub_files(file: ModelFile, folder: Path) -> None:
    """Write the files of `write_hub_folder` to a folder. Files of these names are replaced."""
    write_model_file(folder / HUB_WEIGHTS, file)
    for name, content in _files(file).items():
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        (folder / name).write_text(text, encoding="utf-8")


def _files(file: ModelFile) -> dict[str, Any]:
    """Return the files of the Hub folder except the weights: a text, or values to write as JSON, by name."""
    settings = file.trial.settings.model_dump(mode="json", by_alias=True)
    task, symbols = file.trial.settings.task, file.symbols
    if not isinstance(task, LanguageModelSettings) or symbols is None:
        return {"config.json": {"architectures": ["activemem"], "activemem_version": file.version} | settings}
    vocabulary, vocab = text_vocabulary_from_dict(symbols), task.interface.model.vocab
    streams, end = not (task.by_line or vocabulary.documents), vocabulary.end
    longest = {"stream": _STREAM_TOKENS, "packed": task.context}.get(task.batching, task.longest)
    config = {
        "model_type": "activemem",
        "architectures": ["ActivememForCausalLM"],
        "auto_map": {
            "AutoConfig": f"{CLASSES}.ActivememConfig",
            "AutoModelForCausalLM": f"{CLASSES}.ActivememForCausalLM",
        },
        "vocab_size": vocab,
        "bos_token_id": end if streams else LINE_START,
        # a stream continues after the end of a line, which is not padding either
        **({} if streams else {"eos_token_id": end, "pad_token_id": end}),
        "max_position_embeddings": longest,
        "use_cache": False,
        "activemem_version": file.version,
        "activemem": settings,
    }
    tokenizer = {
        "tokenizer_class": "ActivememTokenizer",
        "auto_map": TOKENIZER_CLASSES,
        "model_max_length": longest,
    }
    return {
        "config.json": config,
        "tokenizer_config.json": tokenizer,
        SYMBOLS: {"symbols": symbols, "streams": streams, "vocab": vocab},
        f"{CLASSES}.py": CLASSES_SOURCE,
    }
