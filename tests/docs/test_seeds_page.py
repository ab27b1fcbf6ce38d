"""`docs/how-to/seeds.md`: its claims load, and its output is reproduced from synthetic lengths.

python -m tests.docs.test_seeds_page write the output again
"""

import re
from pathlib import Path

import polars as pl
import pytest

from activemem import load_study
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.terminal import (
    claims_to_terminal,
    legend,
    measured_sentences,
    settings_sentences,
)
from activemem.studies import find_study_file
from activemem.studies.claims.comparisons import iter_comparisons
from activemem.studies.claims.parser import FUNCTIONS, SIGNS

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "seeds.md"
PAGE = PATH.read_text(encoding="utf-8")
LANGUAGE = (PATH.parents[1] / "reference" / "keys-claims.md").read_text(encoding="utf-8")
SHIPPED = find_study_file("algorithmic").read_text(encoding="utf-8")
STUDY = SHIPPED.partition("[[claim]]")[0] + "[source]" + SHIPPED.partition("[source]")[2]
CLAIMS = re.search(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[1]
SHOWN = re.compile(r"(^\$ activemem claim check algorithmic\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
EXAMPLES = re.findall(r"^```\n(all.*?)^```$", LANGUAGE, re.DOTALL | re.MULTILINE)[0].splitlines()

# By task and mixer, for each seed, near to what the paper prints.
LENGTHS = {
    "addition": {"conv(k=20)": (41, 41, 41), "sa": (7, 7, 7)},
    "remember": {
        "sa": (57, 56, 58),
        "conv(k=20)": (36, 36, 36),
        "highway_conv(k=20)": (33, 34, 33),
        "sa + conv(k=20)": (26, 27, 25),
        "sa + highway_conv(k=20)": (38, 37, 37),
    },
    "reverse": {
        "cgru(k=20)": (8, 7, 8),
        "sa": (41, 40, 42),
        "conv(k=20)": (18, 17, 18),
        "persistent_conv(k=20)": (25, 26, 24),
        "highway_conv(k=20)": (20, 19, 20),
        "sa + conv(k=20)": (41, 41, 40),
        "sa + persistent_conv(k=20)": (44, 42, 45),
        "sa + highway_conv(k=20)": (41, 40, 41),
    },
}


def told():
    """Return the output for the page's claims with these lengths."""
    study = load_study(STUDY + CLAIMS)
    rows = []
    for trial in study.trials:
        ends = LENGTHS.get(trial.levels["task"], {}).get(trial.levels["mixer"])
        if ends:
            metrics = [{"name": "max_length", "value": float(ends[trial.levels["seed"]])}]
            settings = trial.settings
            rows.append(
                (
                    trial.id,
                    study.name,
                    settings.seed,
                    settings.model.recipe,
                    settings.task.name,
                    "done",
                    None,
                    "",
                    "a1b2c3d",
                    metrics,
                )
            )
    columns = ("trial", "study", "seed", "recipe", "task", "status", "reason", "device", "commit", "metrics")
    outcomes = pl.DataFrame(rows, schema=columns, orient="row")
    found, footer = check_claims(study, outcomes), "45 of 144 trials, made up for this page"
    sentences = [*measured_sentences(study), *legend(found), *settings_sentences(study, outcomes), footer]
    return claims_to_terminal(found, sentences)


def test_the_output_on_the_page_is_what_comes_of_its_claims():
    assert SHOWN.search(PAGE)[2] == told()


@pytest.mark.parametrize("holds", EXAMPLES, ids=EXAMPLES)
def test_an_example_of_the_language_is_a_claim(holds):
    (claim,) = load_study(f'{STUDY}[[claim]]\nname = "x"\nholds = "{holds}"\n').claims
    assert list(iter_comparisons(claim.statement))


def test_every_form_of_the_language_is_in_the_reference():
    forms = [*(f"`{word}(" for word in FUNCTIONS), *(f"`a {sign} b`" for sign in SIGNS)]
    forms += [" within 2 of b`", "except [", "`and`", "`or`", "`not`", " is sa", " in ["]
    assert [form for form in forms if form not in LANGUAGE] == []


if __name__ == "__main__":
    PATH.write_text(SHOWN.sub(lambda found: found[1] + told() + found[3], PAGE), encoding="utf-8")
