"""The package's tasks without generating settings, in the form that the checks need."""

import torch
from torch.nn.functional import pad

from activemem.engine import get_task
from activemem.engine.data.sentence_pairs import collate
from activemem.engine.data.vocabularies.vocabulary import START
from activemem.engine.tasks.conformance import EXAMPLES, Subject
from activemem.engine.tasks.long_term import LONG_TERM_PROBLEMS, draw_lengths
from activemem.engine.tasks.memory_degradation import generate_splits
from activemem.studies.catalog.tasks import (
    AlgorithmicTask,
    DegradationProblem,
    Examples,
    LongTermSettings,
    TaskSizes,
    require_task,
)


def own_subject(name, **settings):
    """Return one of this package's tasks; a curriculum is taken two steps after its first length."""
    task = require_task(name).settings.model_validate({"name": name, **settings})
    spec, vocab = task.spec, task.interface.model.vocab
    if isinstance(spec, AlgorithmicTask):
        made, length = get_task(spec.name), spec.start + 2 * spec.length_step
        return Subject(
            name=spec.name,
            settings=settings,
            kind=spec.kind,
            sizes=TaskSizes(tokens=spec.sequence_length(length), vocab=vocab),
            draw=lambda seed: made.batch(EXAMPLES, length, torch.Generator().manual_seed(seed), vocab=vocab),
            solve=made.solve,
        )
    if isinstance(task, LongTermSettings):
        shortest, longest = task.length_range

        def sequences(seed):
            generator = torch.Generator().manual_seed(seed)
            lengths = draw_lengths(shortest, longest, EXAMPLES, generator)
            inputs, targets, _ = LONG_TERM_PROBLEMS[task.name].batch(lengths, longest, generator)
            return Examples(inputs, targets[:, None], lengths)

        sizes = TaskSizes(tokens=longest, columns=2, targets=1)
        return Subject(name=spec.name, settings=settings, kind=spec.kind, sizes=sizes, draw=sequences)
    assert isinstance(spec, DegradationProblem), f"{spec.name} draws no examples"
    sizes = TaskSizes(tokens=spec.tokens, vocab=vocab)

    def first(pairs):
        batch = collate(pairs, range(min(EXAMPLES, len(pairs.source.line_words))))
        targets = pad(batch.targets, (1, 0), value=START)  # as long as the sources
        return Examples(batch.sources, pad(targets, (0, batch.sources.shape[1] - targets.shape[1])))

    return Subject(
        name=spec.name,
        settings=settings,
        kind=spec.kind,
        sizes=sizes,
        draw=lambda seed: first(generate_splits(spec, seed).train),
        test_sets=lambda: {"test": first(generate_splits(spec, 0).test)},
    )
