"""The course of a dimension is one level, which is the value itself where nothing changes."""

import pytest

from activemem.studies.population import read_course, write_courses
from activemem.studies.schema.search import read_dimension

RUNGS = (2, 4, 6, 8)
RATE, DECAY, NESTED = map(
    read_dimension, ("real(1e-4, 1, log=true)", "choice(0, 0.01, 0.1)", "choice(false, true)")
)


@pytest.mark.parametrize(
    ("values", "dimension", "level"),
    [
        ([0.001, 0.001, 0.001, 0.001], RATE, 0.001),
        ([0.001, 0.0012, 0.0012, 1e-4], RATE, "0.001 → 0.0012 after 2 → 0.0001 after 6"),
        ([0.01, 0.01, 0], DECAY, "0.01 → 0 after 4"),
        ([False, True], NESTED, "false → true after 2"),
    ],
)
def test_a_course_is_read_as_it_was_written(values, dimension, level):
    written = write_courses([{"it": each} for each in values], RUNGS)
    assert written == {"it": level}
    assert read_course(level, dimension, RUNGS[: len(values)]) == tuple(values)


@pytest.mark.parametrize(
    "level",
    [
        "0.001 → 0.0012 after 8",  # the end
        "0.001 → 0.0012 after 3",
        "0.001 → 0.0012",
        "0.001 → 2 after 4",  # outside
        "0.001 → 0.001 after 4",
        "0.001 → 0.002 after 4 → 0.003 after 2",
        "0.001 → x after 4",
        "0.001",
        2.0,
    ],
)
def test_what_is_no_course_is_refused(level):
    with pytest.raises(ValueError, match=r"expected|not in list|could not convert"):
        read_course(level, RATE, RUNGS)
