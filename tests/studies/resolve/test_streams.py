"""Blocks that cannot read an endless text, and what a study can do about them."""

import pytest

from activemem import StudyError, load_study

from ...study_texts import study_text


@pytest.mark.parametrize("mixer", ["sa(heads=2)", "fox(heads=2)"])
def test_a_block_that_sees_the_whole_past_of_a_stream_is_refused_with_all_remedies(mixer, golden):
    task = {"name": "language_model", "corpus": "paradise-lost", "context": 16}
    text = study_text(task=task, train={"curriculum": None}, factors={"mixer": [mixer]})
    with pytest.raises(StudyError) as caught:
        load_study(text)
    golden(caught.value.faults[0].message)
    packed = study_text(
        task={**task, "batching": "packed"}, train={"curriculum": None}, factors={"mixer": [mixer]}
    )
    assert load_study(packed).trials
