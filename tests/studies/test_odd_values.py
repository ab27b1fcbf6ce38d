"""An included study with any value at any key either loads or raises a StudyError."""

import random
from pathlib import Path

import pytest

import activemem
from activemem import StudyError, load_study
from activemem.studies.text.toml_positions import locate

STUDIES = Path(activemem.__file__).parent / "studies"
ODD = [
    *('""', '" "', '"a\\nb"', '"{nothing}"', '"[(+"', f'"{"x" * 5000}"', "''", "'ä\\'"),
    *("0", "-1", "1.0", "1e400", "nan", "-inf", "9223372036854775807", "99999999999999999999"),
    *("true", "[]", "[[]]", "[1, 'a', {}]", "{}", "{ a = 1 }", "{ name = 3 }", "1979-05-27", "07:32:00"),
]


def keys_of_all_studies():
    """Return each key of the included studies, with the smallest study that has it and its path there.

    Names of factors and their levels count as keys; positions in lists are not distinguished.
    """
    found = {}
    for path in sorted(STUDIES.glob("*.toml"), key=lambda path: path.stat().st_size):
        text = path.read_text()
        for key, place in locate(text).items():
            name = ".".join("[]" if isinstance(part, int) else part for part in key)
            found.setdefault(name, (text, place))
    return found


KEYS, PARTS = keys_of_all_studies(), 24


def variants(text, place, values):
    """Yield the text with each of the values at one key, and with this key misspelt."""
    for value in values:
        yield text[: place.value[0]] + value + text[place.value[1] :]
    if place.key != place.value:
        yield text[: place.key[0]] + "unknown" + text[place.key[1] :]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.heavy) for part in range(1, PARTS))]
)
def test_every_key_can_have_an_odd_value_or_a_wrong_name(part):
    drawn = random.Random(part)
    assert_loaded_or_told(part, lambda: drawn.sample(ODD, 1))


@pytest.mark.slow  # twenty times as many studies
@pytest.mark.parametrize("part", range(PARTS))
def test_every_key_can_have_every_odd_value(part):
    assert_loaded_or_told(part, lambda: ODD)


def assert_loaded_or_told(part, draw_values):
    for text, place in list(KEYS.values())[part::PARTS]:
        for changed in variants(text, place, draw_values()):
            try:
                load_study(changed)
            except StudyError as error:
                assert all(fault.message for fault in error.faults)
                assert error.faults


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("train.curriculum.grow=1.0", "[train] curriculum: unknown key 'grow'; nearest: grow_at"),
        ("train.stop.epoch=1", "[train] stop: unknown key 'epoch'; nearest: epochs"),
    ],
)
def test_a_wrong_key_of_an_optional_table_is_reported_with_the_nearest(override, told):
    with pytest.raises(StudyError) as caught:
        load_study("algorithmic-small", [override])
    assert told in [fault.message for fault in caught.value.faults]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x" * 201,
    ],
    ids=["no name", "a name that is too long"],
)
def test_a_claim_has_a_name_of_one_to_200_characters(name, golden):
    text = (STUDIES / "quickstart.toml").read_text() + f'\n[[claim]]\nname = "{name}"\nholds = "1 > 0"\n'
    with pytest.raises(StudyError) as caught:
        load_study(text)
    golden([fault.message for fault in caught.value.faults])
