"""Documents: huge whole numbers, and thousands of faults in one line."""

import pytest

from activemem import StudyError, load_study

from ...study_texts import study_text

DIGITS = "9" * 5000
HEXADECIMAL = "0x" + "f" * 5000


def test_thousands_of_faults_in_one_line_are_each_reported_once():
    alternatives = ", ".join(f"conv(k={number})" for number in range(1020, 5000))
    with pytest.raises(StudyError) as error:
        load_study(
            study_text(search={"trials": 2, "metric": "loss"}, space={"mixer": f"choice({alternatives})"})
        )
    ours = [fault for fault in error.value.faults if "k must be at most 1024" in fault.message]
    assert len(ours) == 4999 - 1024
    assert len({fault.message for fault in ours}) == len(ours)


@pytest.mark.parametrize("number", [DIGITS, HEXADECIMAL, f"-{DIGITS}", "9" * 65, "0b1" + "0" * 70])
@pytest.mark.parametrize("place", ["epochs = {}", "epochs = {{ a = {}, b = 1 }}", "epochs = [1, {}]", "x={}"])
def test_a_whole_number_of_many_digits_is_a_fault_at_its_place(number, place):
    written = place.format(number)
    text = study_text(factors={"mixer": ["sa"], "task": ["reverse"]}).replace("epochs = 2", written)
    with pytest.raises(StudyError) as error:
        load_study(text)
    fault = error.value.faults[0]
    assert "expected a whole number of at most 64 bits" in fault.message
    assert text.splitlines()[fault.line - 1] == written
    assert fault.text[fault.start : fault.end] == number


@pytest.mark.parametrize("number", [DIGITS, HEXADECIMAL])
def test_an_override_may_have_no_such_number_either(number):
    text = study_text(factors={"mixer": ["sa"], "task": ["reverse"]})
    with pytest.raises(StudyError, match="expected a whole number of at most 64 bits"):
        load_study(text, [f"train.epochs={number}"])


def test_long_texts_keys_and_comments_are_no_numbers():
    text = study_text(
        study={"name": "tiny", "title": DIGITS}, factors={"mixer": ["sa"], "task": ["reverse"], "seed": [1]}
    )
    assert load_study(f"# {DIGITS}\n{text}").title == DIGITS
    with pytest.raises(StudyError) as error:
        load_study(f"{'a' * 70} = 1\n{text}")
    assert "whole number" not in str(error.value)
