"""A task has a name, its own settings, and requirements on a model; it is registered beside its class.

`spec` has what all tasks share, and their registry. Each family has a file: `algorithmic` (sequences of
growing length), `language_model`, `long_term` (regression), `memory_degradation` and `sentence_pairs`
(transduction).
"""

from .algorithmic import AlgorithmicTask, require_algorithmic
from .language_model import UNBOUNDED_PAST, LanguageModelSettings
from .long_term import LongTermSettings
from .memory_degradation import DegradationProblem
from .sentence_pairs import ParsingSettings, SentencePairSettings, TranslationSettings
from .spec import (
    ModelInterface,
    TaskError,
    TaskKind,
    TaskSettings,
    TaskSpec,
    lookup_task,
    read_task_settings,
    register_task,
    require_task,
    task_names,
)

__all__ = [
    "UNBOUNDED_PAST",
    "AlgorithmicTask",
    "DegradationProblem",
    "LanguageModelSettings",
    "LongTermSettings",
    "ModelInterface",
    "ParsingSettings",
    "SentencePairSettings",
    "TaskError",
    "TaskKind",
    "TaskSettings",
    "TaskSpec",
    "TranslationSettings",
    "lookup_task",
    "read_task_settings",
    "register_task",
    "require_algorithmic",
    "require_task",
    "task_names",
]
