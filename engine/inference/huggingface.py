"""A trained language model as classes of `transformers`: configuration, model and tokenizer.

The folder that `activemem model export` writes names these classes, so that `AutoModelForCausalLM` and
`AutoTokenizer` open it with `trust_remote_code=True` where activemem is installed.
"""

# pyright: reportMissingImports=false
# transformers is an extra
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizer
from transformers.modeling_outputs import CausalLMOutput
from transformers.utils import cached_file

from ...blocks import Model
from ...blocks.models.model import InputError
from ...studies.catalog.tasks import LanguageModelSettings
from ..core.models import ModelFile, read_model_file, rebuild, with_weights
from ..data.text.batches import LINE_START
from ..data.vocabularies.build import text_vocabulary_from_dict
from ..data.vocabularies.texts import UNKNOWN, TextVocabulary, TextWordVocabulary
from .hub_folder import CLASSES, CLASSES_SOURCE, HUB_WEIGHTS, SYMBOLS, TOKENIZER_CLASSES, write_hub_files
from .trained_model import UseError

_FIRST, _END = "<start>", "<end of line>"

_NO_CACHE = "there is no cache, since each call reads the whole text"
_UNSUPPORTED = {
    "cache": _NO_CACHE,
    "cu_seq_lens_k": "one row is one text",
    "cu_seq_lens_q": "one row is one text",
    "inputs_embeds": "the model reads symbols",
    "is_causal": "the model is causal",
    "output_attentions": "blocks have no attention weights in common",
    "output_router_logits": "blocks have no routers in common",
    "past_key_values": _NO_CACHE,
    "position_ids": "positions are counted from the first symbol of a text",
    "seq_idx": "one row is one text",
    "shift_labels": "labels are shifted here",
    "token_type_ids": "symbols have no types",
    "use_cache": _NO_CACHE,
}
"""Arguments of `forward` in other models of transformers, and why these models have none."""

_HUB = ("cache_dir", "force_download", "local_files_only", "revision", "subfolder", "token")
_LOADING = ("adapter_kwargs", "low_cpu_mem_usage", "trust_remote_code", "use_safetensors", "weights_only")
_SAVING = (
    "max_shard_size",
    "safe_serialization",
    "save_function",
    "save_original_format",
    "save_peft_format",
    "token",
)
"""Options of loading and saving that change nothing here: the weights are one safetensors file."""


def _refuse(where: str, options: Mapping[str, Any]) -> None:
    """Raise InputError for options that have a value; False and None ask for nothing."""
    asked = [name for name, value in options.items() if value is not None and value is not False]
    if asked:
        names = ", ".join(f"{each} ({why})" if (why := _UNSUPPORTED.get(each)) else each for each in asked)
        raise InputError(f"{where} of a model of activemem does not support {names}")


class _WithClasses:
    """What a saved folder needs beside the files of transformers: the file that names these classes."""

    @classmethod
    def register_for_auto_class(cls, auto_class: object = None) -> None:
        """Do nothing. Otherwise, transformers copies the source of these classes into a saved folder."""

    def save_pretrained(self, save_directory: str | Path, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        """Write the files of transformers, and the one that names the classes."""
        Path(save_directory).mkdir(parents=True, exist_ok=True)
        (Path(save_directory) / f"{CLASSES}.py").write_text(CLASSES_SOURCE, encoding="utf-8")
        return super().save_pretrained(save_directory, *arguments, **options)  # pyright: ignore[reportAttributeAccessIssue]


class ActivememConfig(_WithClasses, PreTrainedConfig):
    """Configuration of a model, read from `config.json`; its field `activemem` has the trial's settings."""

    model_type = "activemem"


class ActivememForCausalLM(_WithClasses, PreTrainedModel, GenerationMixin):
    """A trained language model; `module` is the model of activemem."""

    config_class = ActivememConfig
    main_input_name = "input_ids"
    accepts_loss_kwargs = True  # `num_items_in_batch`, with which a Trainer accumulates gradients

    def __init__(self, config: ActivememConfig, file: ModelFile | None = None) -> None:
        if file is None:
            raise UseError("a model of activemem has the weights of a training: use from_pretrained")
        if file.symbols is None or not isinstance(file.trial.settings.task, LanguageModelSettings):
            task = file.trial.settings.task.name
            raise UseError(f"expected a language model, got a model of {task}: use activemem.load_model")
        super().__init__(config)  # pyright: ignore[reportCallIssue]
        module = rebuild(file)
        assert isinstance(module, Model), "a language model has one sequence"
        self.module, self._file = module, file
        assert self.generation_config is not None, "transformers sets it for models that generate"
        self.generation_config.use_cache = False

    @classmethod
    def from_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        path: str | Path,
        *,
        config: ActivememConfig | None = None,
        dtype: torch.dtype | str | None = None,
        device_map: Any = None,  # noqa: ANN401  a device, or a map of the whole model to one
        **options: Any,  # noqa: ANN401  those of transformers
    ) -> ActivememForCausalLM:
        """Load a model from a folder, or from a repository of the Hub, in evaluation mode.

        Options that set where the Hub keeps files are applied, and so are those that the configuration has.
        Raise InputError for other ones.
        """
        hub = {name: options.pop(name) for name in _HUB if name in options}
        dtype = options.pop("torch_dtype", dtype)
        rest = {name: value for name, value in options.items() if name not in _LOADING and name[:1] != "_"}
        if config is None:
            config, rest = ActivememConfig.from_pretrained(path, return_unused_kwargs=True, **hub, **rest)
        if isinstance(dtype, str) and dtype != "auto":
            name, dtype = dtype, getattr(torch, dtype.removeprefix("torch."), None)
            rest |= {} if isinstance(dtype, torch.dtype) else {f"dtype={name!r}": True}
        if isinstance(device_map, dict):  # accelerate writes a map of the whole model as {"": device}
            rest |= {"device_map of parts": device_map.keys() != {""}}
            device_map = device_map.get("")
        _refuse("from_pretrained", rest)
        weights = cached_file(path, HUB_WEIGHTS, **hub)
        assert weights is not None, "a missing file raises"
        model = cls(config, read_model_file(Path(weights)))
        if isinstance(dtype, torch.dtype):
            model = model.to(dtype)
        if device_map == "auto":
            device_map = "cuda" if torch.cuda.is_available() else "cpu"
        return model.to(device_map).eval() if device_map is not None else model.eval()

    def save_pretrained(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        save_directory: str | Path,
        is_main_process: bool = True,
        state_dict: Mapping[str, Tensor] | None = None,
        **options: object,
    ) -> None:
        """Write a folder as `activemem model export` does, with the present weights or those of `state_dict`.

        Files of an earlier model in the folder are replaced. Raise ModelFileError for weights of another
        model, such as one with adapters.
        """
        rest = {name: value for name, value in options.items() if name not in _SAVING}
        _refuse("save_pretrained", rest)
        if is_main_process:
            weights = self.state_dict() if state_dict is None else state_dict
            present = {name.removeprefix("module."): weight for name, weight in weights.items()}
            folder = Path(save_directory)
            folder.mkdir(parents=True, exist_ok=True)
            write_hub_files(with_weights(self._file, present), folder)

    def train(self, mode: bool = True) -> ActivememForCausalLM:
        """Set the mode; before an evaluation, learnt spans follow the last step of an optimiser."""
        self.module.after_optimiser_step()
        return super().train(mode)

    def load_state_dict(self, state_dict: Mapping[str, Tensor], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        """Load weights under the names of this class, or under those of a saved folder, as a Trainer does."""
        if not any(name.startswith("module.") for name in state_dict):
            found, first = dict(state_dict), dict[int, str]()
            for name, weight in self.module.state_dict().items():  # a file has tied weights under one name
                original = first.setdefault(weight.data_ptr(), name) if weight.numel() else name
                if original in found:
                    found.setdefault(name, found[original])
            state_dict = {f"module.{name}": weight for name, weight in found.items()}
        return super().load_state_dict(state_dict, *arguments, **options)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        *,
        num_items_in_batch: Tensor | int | None = None,
        output_hidden_states: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool | None = None,
        **others: object,
    ) -> CausalLMOutput | tuple[Any, ...]:
        """Return the logits (batch, length, vocab) of the next symbols.

        With `labels`, also return the mean loss, or its sum divided by `num_items_in_batch`. With
        `output_hidden_states`, also return the residual stream (batch, length, width) before the first
        sublayer and after each one. Each row is one text; the mask may leave out symbols at its start and at
        its end. Raise InputError for another mask, and for arguments that are not supported.
        """
        _refuse("forward", {"output_attentions": self.config.output_attentions, **others})
        if self.training:
            self.module.after_optimiser_step()  # no Trainer calls it
        restored, places = None, None
        if attention_mask is not None:
            _check_mask(attention_mask, input_ids)
            if not bool(attention_mask[:, 0].all()):
                # padding at the start is read after the text, where it changes no output of the causal model
                length, first = input_ids.shape[1], attention_mask.long().argmax(1, keepdim=True)
                places = (torch.arange(length, device=input_ids.device) + first) % length
                restored = places.argsort(1)[..., None]
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        with _recorded_states(self.module) if wanted else nullcontext() as states:
            logits = self.module(input_ids if places is None else input_ids.gather(1, places))
        if restored is not None:
            logits = logits.take_along_dim(restored, 1)
            states = states and [state.take_along_dim(restored, 1) for state in states]
        loss = None
        if labels is not None:
            loss = self.loss_function(
                logits=logits,
                labels=labels,
                vocab_size=logits.shape[-1],
                num_items_in_batch=num_items_in_batch,
            )
        kept = slice(-logits_to_keep or None, None) if isinstance(logits_to_keep, int) else logits_to_keep
        output = CausalLMOutput(
            loss=loss,
            logits=logits[:, kept],  # pyright: ignore[reportArgumentType]
            hidden_states=states and tuple(states),  # pyright: ignore[reportArgumentType]
        )
        return (
            output if (self.config.return_dict if return_dict is None else return_dict) else output.to_tuple()
        )

    def generate(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  those of transformers
        """Continue texts. Each step reads the whole text again, since there is no cache to use."""
        options["use_cache"] = False
        _refuse("generate", {name: value for name, value in options.items() if name in _UNSUPPORTED})
        return super().generate(*arguments, **options)

    def prepare_inputs_for_generation(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        **_: object,  # what `generate` keeps from step to step; it has refused the user's other arguments
    ) -> dict[str, Any]:
        """Return the arguments of `forward` for the next symbol: the whole text, since there is no cache."""
        return {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "output_hidden_states": output_hidden_states,
            "output_attentions": output_attentions,
        }


def _check_mask(mask: Tensor, symbols: Tensor) -> None:
    """Raise InputError unless each row of the mask (batch, length) is one run of ones, or zeros alone."""
    if mask.shape != symbols.shape:
        expected, got = tuple(symbols.shape), tuple(mask.shape)
        raise InputError(f"attention_mask: expected the shape {expected} of input_ids, got {got}")
    starts = functional.pad(mask.bool().long(), (1, 0)).diff(dim=1) > 0
    if bool((starts.sum(1) > 1).any()):
        raise InputError("attention_mask: expected zeros only before and after a text, got zeros within one")


@contextmanager
def _recorded_states(model: Model) -> Iterator[list[Tensor]]:
    """Record the body's input and the output of each sublayer, in the order of the forward pass."""
    states = list[Tensor]()
    hooks = [model.body.register_forward_pre_hook(lambda _, given: states.append(given[0]))]
    hooks += [
        layer.register_forward_hook(lambda *given: states.append(given[2])) for layer in model.body.layers
    ]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()


class ActivememTokenizer(_WithClasses, PreTrainedTokenizer):
    """Tokenizer with the symbols of a trained language model."""

    vocab_files_names: ClassVar = {"symbols_file": SYMBOLS}
    model_input_names: ClassVar = ["input_ids", "attention_mask"]
    padding_side = "right"
    _auto_map: ClassVar = TOKENIZER_CLASSES

    def __init__(self, symbols_file: str, **options: Any) -> None:  # noqa: ANN401  those of transformers
        record = json.loads(Path(symbols_file).read_text(encoding="utf-8"))
        self._vocabulary, self._streams = text_vocabulary_from_dict(record["symbols"]), record["streams"]
        self._names = _names(self._vocabulary, record["vocab"], streams=self._streams)
        self._ids = {name: number for number, name in enumerate(self._names)}
        end = self._names[self._vocabulary.end]
        start = end if self._streams else self._names[LINE_START]
        special = {"bos_token": start, "eos_token": end, "pad_token": end}
        if isinstance(self._vocabulary, TextWordVocabulary) and UNKNOWN.decode() in self._ids:
            special["unk_token"] = UNKNOWN.decode()
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
        """Return the names of a text's symbols. There is no end mark after the last line or document.

        Raise DataError if a part of the text has no symbol.
        """
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
        if token_ids_1 is not None:
            raise InputError("a language model reads one text, got a pair")
        if not self._streams:
            return [LINE_START, *token_ids_0]
        return [self._vocabulary.end, *token_ids_0] if self._vocabulary.begins_with_mark else token_ids_0

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        if unknown := [name for name in map(str, new_tokens) if name not in self._ids]:
            raise InputError(
                f"expected no new tokens, since the model has no weights for {', '.join(unknown)}"
            )
        return super()._add_tokens(new_tokens, special_tokens)  # pyright: ignore[reportArgumentType]

    def _convert_token_to_id(self, token: str) -> int | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._ids.get(token, self._ids.get(self.unk_token) if self.unk_token else None)

    def _convert_id_to_token(self, index: int) -> str:
        return self._names[index]

    def _decode(self, token_ids: int | list[int], skip_special_tokens: bool = False, **_: object) -> str:
        # pipelines ask for a clean-up of spaces, which would change the text
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
