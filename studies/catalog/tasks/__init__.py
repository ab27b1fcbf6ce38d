"""Tasks: each has a name, settings of its own and requirements on a model, registered beside its class.

`spec` has the registry and what all tasks share. Each family has a file: `algorithmic` (sequences of
growing length), `labelled` (the user's labelled sequences), `language_model`, `long_term` (regression),
`memory_degradation` and `sentence_pairs` (transduction). `generated` has tasks that draw their examples:
those of plug-ins and those of `synthetic`.
"""

from .algorithmic import DEV_SEQUENCES, AlgorithmicSettings, AlgorithmicTask, require_algorithmic
from .generated import IGNORED, Draw, Examples, GeneratedTask, TaskSizes, check_statements, register_task
from .labelled import LabelledSequenceSettings, LabelledSettings, TokenClassificationSettings
from .language_model import UNBOUNDED_PAST, LanguageModelSettings
from .long_term import LongTermSettings
from .memory_degradation import DegradationProblem
from .sentence_pairs import ParsingSettings, SentencePairSettings, SizeChoice, TranslationSettings
from .spec import (
    TASKS,
    TEST_SETS,
    ModelInterface,
    TaskError,
    TaskKind,
    TaskSettings,
    TaskSpec,
    lookup_task,
    read_task_settings,
    require_task,
    task_names,
)
from .synthetic import LengthTask, SyntheticTask

__all__ = [
    "DEV_SEQUENCES",
    "IGNORED",
    "TASKS",
    "TEST_SETS",
    "UNBOUNDED_PAST",
    "AlgorithmicSettings",
    "AlgorithmicTask",
    "DegradationProblem",
    "Draw",
    "Examples",
    "GeneratedTask",
    "LabelledSequenceSettings",
    "LabelledSettings",
    "LanguageModelSettings",
    "LengthTask",
    "LongTermSettings",
    "ModelInterface",
    "ParsingSettings",
    "SentencePairSettings",
    "SizeChoice",
    "SyntheticTask",
    "TaskError",
    "TaskKind",
    "TaskSettings",
    "TaskSizes",
    "TaskSpec",
    "TokenClassificationSettings",
    "TranslationSettings",
    "check_statements",
    "lookup_task",
    "read_task_settings",
    "register_task",
    "require_algorithmic",
    "require_task",
    "task_names",
]
