"""Plans of studies with faults."""

import pytest

from activemem import StudyError, load_study

from ..study_texts import study_text

TEXT = study_text(
    task={"name": "reverse"}, train={"steps_per_epoch": 3}, factors={"mixer": ["sa", "conv(k=3)"]}
)


def message(text, *overrides):
    with pytest.raises(StudyError) as caught:
        load_study(text, overrides)
    return str(caught.value)
