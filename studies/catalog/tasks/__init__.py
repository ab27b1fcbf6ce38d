"""Tasks: each has a name, its own settings, and requirements on a model.

`spec` has the registry and what all tasks share. Each family has a file: `algorithmic` (sequences of growing
length), `language_model`, `long_term` (regression), `memory_degradation`, and `sentence_pairs` (transduction
and labelled sequences). `generated` has the base class of tasks that draw their examples: the tasks of
`synthetic` and of plug-ins.
"""

from .algorithmic import DEV_SEQUENCES, AlgorithmicSettings, AlgorithmicTask, require_algorithmic
from .generated import IGNORED, Draw, Examples, GeneratedTask, TaskSizes, check_statements, register_task
from .language_model import (
    UNBOUNDED_PAST,
    LanguageModelSettings,
    corpus_of_task,
    split_words,
    vocabulary_size,
)
from .long_term import TOLERANCE, LongTermSettings
from .memory_degradation import DegradationProblem
from .sentence_pairs import (
    LabelledSequenceSettings,
    LabelledSettings,
    ParsingSettings,
    SentencePairSettings,
    SizeChoice,
    TokenClassificationSettings,
    TranslationSettings,
)
from .spec import (
    READ_TASK,
    TASKS,
    TEST_SETS,
    TaskError,
    TaskInterface,
    TaskKind,
    TaskSettings,
    TaskSpec,
    read_task_settings,
    require_task,
    task_names,
)
from .synthetic import LengthTask, SyntheticTask
