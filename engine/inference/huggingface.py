"""A trained language model as classes of `transformers`: configuration, model and tokenizer.

The folder that `activemem model export` writes names these classes, so that `AutoModelForCausalLM` and
`AutoTokenizer` open it with `trust_remote_code=True` where activemem is installed.
"""

# pyright: reportMissingImports=false
# transformers is an extra
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizer
from transformers.modeling_outputs import CausalLMOutput
from transformers.utils import cached_file

from ...blocks import Model
from ..data.text.batches import LINE_START
from ..data.vocabularies.build import text_vocabulary_from_dict
from ..data.vocabularies.texts import TextVocabulary
from .hub_folder import HUB_WEIGHTS, SYMBOLS
from .trained_model import load_model

_FIRST, _END = "<start>", "<end of line>"


class ActivememConfig(PreTrainedConfig):
    """Configuration of a model, read from `config.json`; its field `activemem` has the trial's settings."""

    model_type = "activemem"


class ActivememForCausalLM(PreTrainedModel, GenerationMixin):
    """A trained language model; `module` is the model of activemem."""

    config_class = ActivememConfig
    main_input_name = "input_ids"

    def __init__(self, config: ActivememConfig, module: Model) -> None:
        super().__init__(config)
        self.module = module
        assert self.generation_config is not None, "transformers sets it for models that generate"
        self.generation_config.use_cache = False

    @classmethod
    def from_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        path: str | Path,
        *_: object,
        config: ActivememConfig | None = None,
        **options: Any,  # noqa: ANN401  those of transformers
    ) -> ActivememForCausalLM:
        """Load a model from a folder, or from a repository of the Hub.

        Of the options, `dtype` and a `device_map` of one device are applied.
        """
        weights = cached_file(path, HUB_WEIGHTS)
        assert weights is not None, "a missing file raises"
        module = load_model(weights).module
        assert isinstance(module, Model), "a language model has one sequence"
        model = cls(config or ActivememConfig.from_pretrained(path), module)
        dtype = options.get("dtype", options.get("torch_dtype"))
        if isinstance(dtype, torch.dtype):
            model = model.to(dtype)
        # accelerate writes a map of the whole model to one device as {"": device}
        places = options.get("device_map")
        device = places.get("") if isinstance(places, dict) else None
        return model.to(device).eval() if device is not None else model.eval()

    def save_pretrained(self, *_: object, **__: object) -> None:
        """Raise NotImplementedError. `activemem model export` writes a folder."""
        raise NotImplementedError(
            "save_pretrained is not supported: copy the folder, or write one by activemem model export"
        )

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **_: object,
    ) -> CausalLMOutput:
        """Return the logits (batch, length, vocab) of the next symbols.

        With `labels`, also return the mean loss. The mask may leave out symbols at the start and at the end
        of a row.
        """
        if attention_mask is None or bool(attention_mask[:, 0].all()):
            logits = self.module(input_ids)
        else:
            # padding at the start is read after the text, where it changes no output of the causal model
            length, first = input_ids.shape[1], attention_mask.long().argmax(1, keepdim=True)
            places = (torch.arange(length, device=input_ids.device) + first) % length
            logits = self.module(input_ids.gather(1, places)).take_along_dim(places.argsort(1)[..., None], 1)
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)  # pyright: ignore[reportArgumentType]

    def generate(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  those of transformers
        """Continue texts. Each step reads the whole text again, since there is no cache to use."""
        return super().generate(*arguments, **{**options, "use_cache": False})

    def prepare_inputs_for_generation(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object
    ) -> dict[str, Any]:
        """Return the arguments of `forward` for the next symbol: the whole text, since there is no cache."""
        return {"input_ids": input_ids, "attention_mask": attention_mask}


class ActivememTokenizer(PreTrainedTokenizer):
    """Tokenizer with the symbols of a trained language model."""

    vocab_files_names: ClassVar = {"symbols_file": SYMBOLS}
    model_input_names: ClassVar = ["input_ids", "attention_mask"]
    padding_side = "right"

    def __init__(self, symbols_file: str, **options: Any) -> None:  # noqa: ANN401  those of transformers
        record = json.loads(Path(symbols_file).read_text(encoding="utf-8"))
        self._vocabulary, self._streams = text_vocabulary_from_dict(record["symbols"]), record["streams"]
        self._names = _names(self._vocabulary, record["vocab"], streams=self._streams)
        self._ids = {name: number for number, name in enumerate(self._names)}
        end = self._names[self._vocabulary.end]
        start = end if self._streams else self._names[LINE_START]
        special = {"bos_token": start, "eos_token": end, "pad_token": end}
        # special tokens in a saved configuration must not replace those of the model
        super().__init__(**{**options, **special})

    @property
    def vocab_size(self) -> int:
        """Return the number of symbols."""
        return len(self._names)

    def get_vocab(self) -> dict[str, int]:
        """Return a mapping from the name of each symbol to its number."""
        return dict(self._ids)

    def tokenize(self, text: str, **_: object) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the names of a text's symbols. There is no end mark after the last line or document."""
        return [self._names[number] for number in self._vocabulary.encode(text)]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        """Join the names of symbols into a text."""
        return self._vocabulary.decode([self._ids[token] for token in tokens])

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Write the tokenizer's symbols to a file; return the file's path."""
        path = Path(save_directory) / f"{filename_prefix + '-' if filename_prefix else ''}{SYMBOLS}"
        record = {
            "symbols": self._vocabulary.to_dict(),
            "streams": self._streams,
            "vocab": len(self._names),
        }
        path.write_text(json.dumps(record), encoding="utf-8")
        return (str(path),)

    def build_inputs_with_special_tokens(
        self, token_ids_0: list[int], token_ids_1: list[int] | None = None
    ) -> list[int]:
        """Put the model's start mark before the token ids of a text.

        The mark is a line start, or the end mark of the text before. Some models have none.
        """
        assert token_ids_1 is None, "a language model reads one text"
        if not self._streams:
            return [LINE_START, *token_ids_0]
        return [self._vocabulary.end, *token_ids_0] if self._vocabulary.begins_with_mark else token_ids_0

    def _convert_token_to_id(self, token: str) -> int:
        return self._ids[token]

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def _decode(self, token_ids: int | list[int], skip_special_tokens: bool = False, **_: object) -> str:
        numbers = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        end = self._vocabulary.end
        if numbers == [LINE_START] and end != LINE_START and not (self._streams or skip_special_tokens):
            return self._names[LINE_START]  # programs look for this name at the start of a text
        if skip_special_tokens and not self._streams:
            numbers = [number for number in numbers if number not in (LINE_START, end)]
        elif skip_special_tokens and self._vocabulary.begins_with_mark and numbers[:1] == [end]:
            numbers = numbers[1:]
        return self._vocabulary.decode(numbers)


def _names(vocabulary: TextVocabulary, vocab: int, *, streams: bool) -> list[str]:
    """Return a distinct name for each symbol.

    It is the symbol's text, or a name like `<7>` if the text is not unique. `streams` is false for models of
    single lines or documents, which have a start symbol.
    """
    names = list[str]()
    for number in range(vocab):
        text = vocabulary.decode([number])
        names.append(f"<{number}>" if not text or text in names or "\ufffd" in text else text)
    if not streams:
        names[LINE_START] = _FIRST
    names[vocabulary.end] = _END
    return names
