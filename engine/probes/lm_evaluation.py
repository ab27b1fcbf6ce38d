"""Scores of trained language models on tasks of the Language Model Evaluation Harness (`lm_eval`)."""

# pyright: reportMissingImports=false
# lm_eval is an extra
from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import ActivememError
from ...storage import Store
from ...studies.catalog.tasks import LanguageModelSettings
from ...studies.study import Study
from ...studies.text.units import plural
from ..core.resources import ONE_CPU, Machine
from ..corpora.files import DataError
from ..inference.trained_model import load_model
from .study_probes import ProbeResult, measure_one
from .trained_models import NOT_KEPT, trained_trials

_log = logging.getLogger(__name__)

NO_LANGUAGE_MODEL = "it is not a language model"
"""The reason for skipping a model that gives texts no likelihood."""


class EvaluationError(ActivememError):
    """Error for tasks that cannot be evaluated; the message says why."""


def evaluate_study(
    study: Study,
    store: Store,
    tasks: Sequence[str],
    folder: Path | None = None,
    *,
    machine: Machine = ONE_CPU,
) -> Iterator[ProbeResult]:
    """Score the trained language models of a study on tasks of lm_eval.

    The scores are stored as metrics of the trials. A score is the metric `lm_eval[TASK,SCORE]`. Tasks are
    looked up in `folder`, by default in lm_eval. The scores of an earlier call are replaced. Raise
    EvaluationError if a package or a task is missing.
    """
    if folder is not None and not folder.is_dir():
        raise EvaluationError(f"there is no folder {folder}: name the folder of the tasks' YAML files")
    try:
        import lm_eval  # noqa: F401, PLC0415  an extra
        from lm_eval.tasks import TaskManager  # noqa: PLC0415  as above
    except ImportError as error:
        raise EvaluationError(f'{error}: pip install "activemem[lm-eval]"') from error
    manager = TaskManager(include_path=folder and str(folder), include_defaults=folder is None)
    if unknown := [task for task in tasks if task not in manager.all_tasks]:
        known = f"; known: {', '.join(sorted(manager.all_tasks))}" if folder else ""
        raise EvaluationError(f"unknown task of lm_eval: {', '.join(unknown)}{known}")
    for trained in trained_trials(study, store):
        trial = trained.trial
        if not isinstance(trial.settings.task, LanguageModelSettings):
            yield ProbeResult(trial=trial, reason=NO_LANGUAGE_MODEL)
        elif not trained.is_kept:
            yield ProbeResult(trial=trial, reason=NOT_KEPT)
        else:
            score = partial(_scores, store.files.weights_file(trial.id), tasks, manager)
            yield measure_one(trained, store, machine, score)


def _scores(weights: Path, tasks: Sequence[str], manager: Any) -> Mapping[str, float]:  # noqa: ANN401  lm_eval has no types
    """Return a model's scores, without documents that have a part for which the model has no symbol.

    If any are left out, `left_out` is their number. Raise DataError if no task has a document left.
    """
    from lm_eval import simple_evaluate  # noqa: PLC0415  an extra
    from lm_eval.models.huggingface import HFLM  # noqa: PLC0415  as above

    from ..inference.huggingface import ActivememForCausalLM, ActivememTokenizer  # noqa: PLC0415  as above

    refused: dict[str, dict[int, str]] = {}
    """Why the model cannot read a document, by its place among those of a task."""

    class Scorer(HFLM):
        """A language model for lm_eval. Each text that it reads begins with exactly one start mark."""

        def loglikelihood(self, requests: Any, **options: Any) -> list[tuple[float, bool]]:  # noqa: ANN401  as above
            if _refused_documents(requests, tokenizer, refused):
                return [(0.0, False)] * len(requests)
            return super().loglikelihood(requests, **options)

        def generate_until(self, requests: Any, **options: Any) -> list[str]:  # noqa: ANN401  as above
            if _refused_documents(requests, tokenizer, refused):
                return [""] * len(requests)
            return super().generate_until(requests, **options)

        def loglikelihood_rolling(self, requests: Any, **options: Any) -> list[float]:  # noqa: ANN401  as above
            if _refused_documents(requests, tokenizer, refused):
                return [0.0] * len(requests)
            # lm_eval puts a mark before whole texts, but none before the contexts of its other requests
            self.add_bos_token = False
            try:
                return super().loglikelihood_rolling(requests, **options)
            finally:
                self.add_bos_token = None

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        load_model(weights).export(path)
        tokenizer = ActivememTokenizer.from_pretrained(path)
        model = Scorer(
            pretrained=ActivememForCausalLM.from_pretrained(path),
            tokenizer=tokenizer,
            device="cpu",
            batch_size=16,
        )
        evaluate = partial(simple_evaluate, model, task_manager=manager, bootstrap_iters=0)
        left, kept, left_out = list(tasks), dict[str, list[int]](), dict[str, float]()
        while (found := evaluate(tasks=left, samples=kept or None)) and refused:
            # no score counts until every document can be read
            for task, reasons in refused.items():
                documents = kept.get(task) or range(found["n-samples"][task]["original"])
                kept[task] = [place for at, place in enumerate(documents) if at not in reasons]
                left_out[f"lm_eval[{task},left_out]"] = left_out.get(f"lm_eval[{task},left_out]", 0) + len(
                    reasons
                )
                _log.warning(
                    "task %s: left out %s, as the model has no symbol for a part: %s",
                    task,
                    plural(len(reasons), "document"),
                    next(iter(reasons.values())),
                )
                if not kept[task]:  # lm_eval takes no places for all
                    if task not in left or len(left) == 1:
                        raise DataError(
                            f"no document of task {task} can be read: {next(iter(reasons.values()))}"
                        )
                    left.remove(task)
                    del kept[task]
            refused.clear()
    assert found is not None, "one process has all results"
    return {
        f"lm_eval[{task},{name.removesuffix(',none').replace(',', '.')}]": float(value)
        for task, scores in found["results"].items()
        for name, value in scores.items()
        if "," in name and isinstance(value, int | float)
    } | left_out


def _refused_documents(
    requests: Sequence[Any],
    tokenizer: Any,  # noqa: ANN401  that of transformers
    refused: dict[str, dict[int, str]],
) -> bool:
    """Add the documents to `refused` that the tokenizer cannot read; return whether there are any."""
    for request in requests:
        for text in request.args:
            try:
                tokenizer.tokenize(text if isinstance(text, str) else "")  # others are settings
            except DataError as error:
                refused.setdefault(request.task_name, {}).setdefault(request.doc_id, str(error))
    return bool(refused)
