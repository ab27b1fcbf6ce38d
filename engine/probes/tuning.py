"""Tuning of the decoding settings of translation models, such as the beam size.

The settings that are best on the dev split are scored on the test split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path

import torch

from ...blocks.models.model import TransductionModel
from ...errors import argument_fault, check_arguments
from ...grammar.nodes import BlockNode
from ...grammar.vocabulary.spec import spec_of
from ...storage import Store, WrittenOutputs, open_store, store_fault
from ...studies.catalog.metrics import TUNED_METRICS, metric_family
from ...studies.planning.time_estimates import positions_of_first_step
from ...studies.resolve.compatibility import covers_nothing
from ...studies.schema.settings import DecodeSettings, read_recipe
from ...studies.study import Study, study_fault
from ..core.models import autocast, float32_products
from ..core.process import prepare_cpu, restored_process
from ..core.resources import ONE_CPU, Machine
from ..data.sentence_pairs import PairSplit
from ..decoding.measures import bleu
from ..decoding.searches import Decoding
from ..objectives.generation import PairData, generate, write_outputs
from ..trial.failures import check_gpu, in_smaller_parts
from .study_probes import ProbeResult, within_limit
from .trained_models import NO_TRANSLATION, NOT_KEPT, TrainedTrial, load_kept_model, trained_trials

_TEXTS = ("sources", "references", "outputs")
_NUMBERS = ("beam", "length_penalty", "coverage_penalty")
_TUNING = (*TUNED_METRICS, "dev_bleu_signature")


def tune_study(study: Study, store: Store | str | Path, machine: Machine = ONE_CPU) -> Iterator[ProbeResult]:
    """Try the decoding settings of [decode] with every trained translation model of a study.

    The settings with the highest dev BLEU (the first of equal ones) produce the test outputs. Stored outputs
    and scores are reused. Each model has the machine's time limit. Raise MachineError if the requested GPU is
    missing, or if CUDA fails on it.
    """
    check_arguments(study_fault(study), store_fault(store), argument_fault("machine", machine, Machine))
    store = open_store(store)
    if study.decode is None:
        return
    with restored_process():
        check_gpu(machine)
        prepare_cpu(machine.threads)
        for trained in trained_trials(study, store):
            trial = trained.trial
            if trial.settings.task.name != "translation":
                yield ProbeResult(trial=trial, reason=NO_TRANSLATION)
            elif not trained.is_kept:
                yield ProbeResult(trial=trial, reason=NOT_KEPT)
            else:
                tuning = _Tuning(trained, study.decode, store, machine)
                yield within_limit(trial, machine, tuning.run)
        store.upkeep.compact()


class _Tuning:
    """Tuning of one trial's decoding settings. The model is loaded only if outputs are missing."""

    def __init__(self, trained: TrainedTrial, decode: DecodeSettings, store: Store, machine: Machine) -> None:
        self._trained, self._settings, self._decode = trained, trained.trial.settings, decode
        self._store, self._data = store, machine.data
        self._device = torch.device(machine.device)

    def run(self) -> dict[str, float]:
        """Store and return all metrics of the trial. Return an empty mapping if they are stored already."""
        rows = self._store.metrics([self._trained.trial.id]).select("name", "value").iter_rows()
        stored = {name: value for name, value in rows if metric_family(name) in _TUNING}
        tokenizers = self._decode.tokenizers
        signature = f"dev_bleu_signature[{bleu([''], [''], tokenizer=tokenizers[0]).signature}]"
        # scores by another version or tokeniser of sacrebleu cannot be compared
        known = stored if signature in stored else {}
        scores = {
            candidate: known[name]
            if (name := _dev_name(candidate)) in known
            else _score(self._write(self._pairs.dev, candidate), tokenizers[0])
            for candidate in self._candidates()
        }
        best = max(scores, key=scores.__getitem__)
        untuned = self._stored_outputs(Decoding.of_task(self._settings), tuned=False)
        tuned = self._test_outputs(best)
        chosen = {f"{name}_tuned": float(getattr(best, name)) for name in _NUMBERS}
        metrics = {
            signature: 1.0,
            "dev_bleu": scores[best],
            **{_dev_name(candidate): score for candidate, score in scores.items()},
            **chosen,
            "bleu_tuned": _score(tuned, tokenizers[0]),
            **{f"bleu_tuned[{name}]": _score(tuned, name) for name in tokenizers},
            **{
                f"bleu_tokenized[{name}]": _score(untuned, name) for name in tokenizers if untuned is not None
            },
            **self._size_scores(best, tuned, known if chosen.items() <= known.items() else {}),
        }
        if metrics == stored:
            return {}
        self._store.write_tuning(self._trained.row, self._trained.metric_rows(metrics), tuned)
        return metrics

    def _candidates(self) -> list[Decoding]:
        default, decode = Decoding.of_task(self._settings), self._decode
        root = read_recipe(self._settings.model.recipe).root
        mixes_lengths, covers = not self._uses_output_sizes, not covers_nothing(root)
        combinations = product(
            decode.beam or (default.beam,),
            decode.length_penalty or (default.length_penalty,),
            decode.coverage_penalty or (default.coverage_penalty,),
            decode.sizes or (default.sizes,),
        )
        candidates = (
            Decoding(
                beam=beam,
                # a penalty has no effect on greedy search, or if all outputs have the same length
                length_penalty=length_penalty if beam > 1 and mixes_lengths else 0.0,
                coverage_penalty=coverage_penalty if beam > 1 and mixes_lengths and covers else 0.0,
                sizes="all" if mixes_lengths else sizes,
            )
            for beam, length_penalty, coverage_penalty, sizes in combinations
        )
        return list(dict.fromkeys(candidates))

    @cached_property
    def _uses_output_sizes(self) -> bool:
        root = read_recipe(self._settings.model.recipe).root
        assert isinstance(root, BlockNode), "a translation needs a whole model"
        return spec_of(root.name).depends_on_target_length

    @cached_property
    def _model(self) -> TransductionModel:
        model = load_kept_model(self._settings, self._store.files.weights_file(self._trained.trial.id))
        assert isinstance(model, TransductionModel), "a translation has a source and a target"
        return model.to(self._device)

    @cached_property
    def _pairs(self) -> PairData:
        return PairData(self._settings, self._data)

    def _size_scores(
        self, best: Decoding, tuned: WrittenOutputs, known: Mapping[str, float]
    ) -> dict[str, float]:
        choices = dict.fromkeys(self._decode.sizes)
        if len(choices) < 2 or not self._uses_output_sizes:
            return {}
        scores = dict[str, float]()
        for sizes in choices:
            decoding, name = replace(best, sizes=sizes), f"bleu_sizes[{sizes}]"
            if name in known:
                scores[name] = known[name]
            else:
                written = tuned if decoding == best else self._test_outputs(decoding)
                scores[name] = _score(written, self._decode.tokenizers[0])
        return scores

    def _test_outputs(self, decoding: Decoding) -> WrittenOutputs:
        return (
            self._stored_outputs(decoding, tuned=True)
            or self._stored_outputs(decoding, tuned=False)
            or self._write(self._pairs.test, decoding)
        )

    def _write(self, split: PairSplit, decoding: Decoding) -> WrittenOutputs:
        train = self._settings.train
        positions = positions_of_first_step(self._settings)
        with autocast(self._settings, self._device, positions), float32_products(train.precision):
            search = partial(generate, self._model, split, decoding, pairs=self._pairs, device=self._device)
            outputs = in_smaller_parts(
                lambda parts: search(batch_size=train.batch_size // parts), 1, train.batch_size
            )
        return write_outputs(outputs, self._pairs, split, decoding)

    def _stored_outputs(self, decoding: Decoding, *, tuned: bool) -> WrittenOutputs | None:
        lines = self._store.outputs([self._trained.trial.id], tuned=tuned)
        # files of earlier versions have null here
        lines = lines.with_columns(lines["sizes"].fill_null("all"))
        lines = lines.filter(**asdict(decoding))
        if lines.is_empty():
            return None
        texts = (lines[name].to_list() for name in ("source", "reference", "output"))
        return WrittenOutputs(**asdict(decoding), **dict(zip(_TEXTS, texts, strict=True)))


def _dev_name(decoding: Decoding) -> str:
    """Return the name of the dev metric for these settings, such as `dev_bleu[4,0.6,0.2]`."""
    sizes = "" if decoding.sizes == "all" else f",{decoding.sizes}"
    return f"dev_bleu[{decoding.beam},{decoding.length_penalty:g},{decoding.coverage_penalty:g}{sizes}]"


def _score(written: WrittenOutputs, tokenizer: str) -> float:
    return bleu(written.outputs, written.references, tokenizer=tokenizer).score
