"""How a trained model searches for outputs, chosen on the dev split and measured on the test split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from itertools import product

import torch

from ...blocks.core.transducer import TRANSDUCERS
from ...blocks.models.seq2seq_model import TransductionModel
from ...grammar.nodes import BlockNode
from ...storage import Store, WrittenOutputs
from ...studies.catalog.metrics import TUNED_METRICS, metric_family
from ...studies.resolve.compatibility import covers_nothing
from ...studies.schema.settings import DecodeSettings, read_recipe
from ...studies.study import Study
from ..core.models import autocast
from ..core.resources import ONE_CPU, Machine
from ..corpora import DataError
from ..data.pairs.corpus import PairSplit
from ..measures import bleu
from ..objectives.generation import Decoding, PairData, generate, write_outputs
from ..trial.precision import float32_products
from .study_probes import ProbeResult
from .trained_models import NOT_KEPT, ProbeError, TrainedTrial, load_model, trained_trials

_TEXTS = ("sources", "references", "outputs")
_TUNING = (*TUNED_METRICS, "dev_bleu_signature")

NO_TRANSLATION = "its task is no translation"
"""Why no search is chosen for a model."""


def tune_study(study: Study, store: Store, machine: Machine = ONE_CPU) -> Iterator[ProbeResult]:
    """Try what `[decode]` says with every trained model of a study that translates; nothing without it.

    The search with the highest BLEU on the dev split, the first of equal ones, writes the test split. Outputs
    and scores that the store has are not made again.
    """
    if study.decode is None:
        return
    torch.set_num_threads(machine.threads)
    for done in trained_trials(study, store):
        if done.trial.settings.task.name != "translation":
            yield ProbeResult(trial=done.trial, reason=NO_TRANSLATION)
        elif not store.weights_file(done.trial.id).exists():
            yield ProbeResult(trial=done.trial, reason=NOT_KEPT)
        else:
            try:
                yield ProbeResult(trial=done.trial, metrics=_Tuning(done, study.decode, store, machine).run())
            except (DataError, ProbeError) as error:
                yield ProbeResult(trial=done.trial, reason=str(error))
    store.compact()


class _Tuning:
    """One trial and what is tried with its model, which is loaded when something is to be written."""

    def __init__(self, done: TrainedTrial, decode: DecodeSettings, store: Store, machine: Machine) -> None:
        self._done, self._settings, self._decode = done, done.trial.settings, decode
        self._store, self._data = store, machine.data
        self._device = torch.device(machine.device)

    def run(self) -> dict[str, float]:
        """All measures by name, which are stored; none if they were before. Raises DataError, ProbeError."""
        held, tokenizers = self._stored_metrics(), self._decode.tokenizers
        signature = f"dev_bleu_signature[{bleu([''], [''], tokenizer=tokenizers[0]).signature}]"
        known = held if signature in held else {}
        scores = {
            candidate: known[name] if (name := _dev_name(candidate)) in known else self._dev_score(candidate)
            for candidate in self._candidates()
        }
        best = max(scores, key=scores.__getitem__)
        own = self._stored_outputs(Decoding.of_task(self._settings), tuned=False)
        written = self._test_outputs(best)
        metrics = {
            signature: 1.0,
            "dev_bleu": scores[best],
            **{_dev_name(candidate): score for candidate, score in scores.items()},
            **{f"{name}_tuned": float(value) for name, value in asdict(best).items()},
            "bleu_tuned": _score(written, tokenizers[0]),
            **{f"bleu_tuned[{tokenizer}]": _score(written, tokenizer) for tokenizer in tokenizers},
            **{f"bleu_tokenized[{each}]": _score(own, each) for each in tokenizers if own is not None},
        }
        if metrics == held:
            return {}
        self._store.write_tuning(self._done.row, self._done.metric_rows(metrics), written)
        return metrics

    def _candidates(self) -> list[Decoding]:
        """What is tried, each search once: a penalty is 0 where it would change nothing."""
        own, decode = Decoding.of_task(self._settings), self._decode
        root = read_recipe(self._settings.model.recipe).root
        assert isinstance(root, BlockNode), "a translation needs a whole model"
        transducer = TRANSDUCERS.find(root.name)
        assert transducer is not None, f"{root.name} was trained"
        ranks, covers = not transducer.depends_on_target_length, not covers_nothing(root)
        tried = product(
            decode.beam or (own.beam,),
            decode.length_penalty or (own.length_penalty,),
            decode.coverage_penalty or (own.coverage_penalty,),
        )
        found = (
            Decoding(
                beam=beam,
                length_penalty=lengths if beam > 1 and ranks else 0.0,
                coverage_penalty=coverage if beam > 1 and ranks and covers else 0.0,
            )
            for beam, lengths, coverage in tried
        )
        return list(dict.fromkeys(found))

    @cached_property
    def _model(self) -> TransductionModel:
        """The trained model, on the device that writes."""
        model = load_model(self._settings, self._store.weights_file(self._done.trial.id))
        assert isinstance(model, TransductionModel), "a translation has a source and a target"
        return model.to(self._device)

    @cached_property
    def _pairs(self) -> PairData:
        return PairData(self._settings, self._data)

    def _dev_score(self, decoding: Decoding) -> float:
        """BLEU of what is written for the dev split."""
        written = self._write(self._pairs.dev, decoding)
        return _score(written, self._decode.tokenizers[0])

    def _test_outputs(self, decoding: Decoding) -> WrittenOutputs:
        """What is written for the test split, by now or before."""
        return (
            self._stored_outputs(decoding, tuned=True)
            or self._stored_outputs(decoding, tuned=False)
            or self._write(self._pairs.test, decoding)
        )

    def _write(self, split: PairSplit, decoding: Decoding) -> WrittenOutputs:
        train = self._settings.train
        with autocast(train.precision, self._device), float32_products(train.precision):
            outputs = generate(
                self._model,
                split,
                decoding,
                pairs=self._pairs,
                batch_size=train.batch_size,
                device=self._device,
            )
        return write_outputs(outputs, self._pairs, split, decoding)

    def _stored_outputs(self, decoding: Decoding, *, tuned: bool) -> WrittenOutputs | None:
        """What the store has of the test split, found by this search."""
        lines = self._store.outputs([self._done.trial.id], tuned=tuned).filter(**asdict(decoding))
        if lines.is_empty():
            return None
        texts = (lines[name].to_list() for name in ("source", "reference", "output"))
        return WrittenOutputs(**asdict(decoding), **dict(zip(_TEXTS, texts, strict=True)))

    def _stored_metrics(self) -> dict[str, float]:
        """What an earlier tuning has stored."""
        rows = self._store.metrics([self._done.trial.id]).select("name", "value").iter_rows()
        return {name: value for name, value in rows if metric_family(name) in _TUNING}


def _dev_name(decoding: Decoding) -> str:
    """The metric of a search on the dev split."""
    return f"dev_bleu[{decoding.beam},{decoding.length_penalty:g},{decoding.coverage_penalty:g}]"


def _score(written: WrittenOutputs, tokenizer: str) -> float:
    return bleu(written.outputs, written.references, tokenizer=tokenizer).score
