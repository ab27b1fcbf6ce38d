"""Studies with ten thousand alternatives are read in seconds of CPU time."""

import time

import pytest

from activemem import StudyError, load_study

from ..study_texts import study_text

MANY = 10_000
SOON_S = 16.0
"""Far above the seconds of a machine with other work, and below those of work that grows with the square."""

TABLES = {"model": {"recipe": "{mixer} >> ff(8)"}, "task": {"name": "not"}}
GRID = TABLES | {"factors": {"mixer": ["sa", "conv(k=3)"], "seed": [0]}}
CLAIM = {"source": "s", "holds": "loss[mixer=sa] < loss[mixer=conv(k=3)]"}
NAMES = [f"r{each}" for each in range(MANY)]

LONG = {
    "options of a choice": study_text(
        **TABLES,
        factors={"seed": [0]},
        search={"trials": 4, "metric": "loss"},
        space={"mixer": f"choice({', '.join(f'ff({each + 1})' for each in range(MANY))})"},
    ),
    "recipes that no level uses": study_text(**GRID, recipes=dict.fromkeys(NAMES, "sa")),
    "recipes that levels use": study_text(
        **TABLES,
        factors={"mixer": [f"{{{name}}}" for name in NAMES], "seed": [0]},
        recipes={name: f"ff({each + 1})" for each, name in enumerate(NAMES)},
    ),
    "levels with one fault": study_text(
        **TABLES,
        factors={
            "mixer": [
                f"ff({each + 1})" if each % 2 else f"sa(heads=3) >> ff({each + 1})" for each in range(MANY)
            ],
            "seed": [0],
        },
    ),
    "claims": study_text(**GRID, claim=[{"name": name, **CLAIM} for name in NAMES]),
    "claims about as many levels": study_text(
        **TABLES,
        factors={"mixer": [f"ff({each + 1})" for each in range(MANY)], "seed": [0]},
        claim=[
            {"name": name, "source": "s", "holds": f"loss[mixer=ff({each + 1})] < loss[mixer=ff(1)] + 0.5"}
            for each, name in enumerate(NAMES)
        ],
    ),
    "claims about an unknown level": study_text(
        **GRID,
        claim=[{"name": name, **CLAIM, "holds": CLAIM["holds"].replace("sa", "saa")} for name in NAMES],
    ),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_ten_thousand_alternatives_are_checked_soon(text):
    start = time.process_time()
    try:
        load_study(text)
    except StudyError as error:
        assert any(words in str(error) for words in ("is unused", "heads", "saa"))
    assert time.process_time() - start < SOON_S
