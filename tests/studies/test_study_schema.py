"""The JSON Schema of study files accepts all included studies, and rejects invalid ones."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

import activemem
from activemem.studies.json_schema import study_schema

STUDIES = sorted((Path(activemem.__file__).parent / "studies").glob("*.toml"))


@pytest.fixture(scope="module")
def schema():
    found = study_schema()
    jsonschema.Draft7Validator.check_schema(found)
    assert json.loads(json.dumps(found)) == found
    return jsonschema.Draft7Validator(found)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_is_valid(schema, path):
    schema.validate(tomllib.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("batch_size = 32", "batchsize = 32", ["train"]),
        ("epochs = 30", "epochs = 0", ["train", "epochs"]),
        ('norm = "pre"', 'norm = "before"', ["model", "norm"]),
        ("[factors]", "[factor]", []),
        ('rows = "mixer"', 'row = "mixer"', ["table", 0]),
    ],
)
def test_a_fault_is_found_at_its_position(schema, before, after, place):
    text = next(path for path in STUDIES if path.stem == "quickstart").read_text(encoding="utf-8")
    assert before in text
    errors = schema.iter_errors(tomllib.loads(text.replace(before, after, 1)))
    assert place in [list(error.absolute_path) for error in errors]


def test_a_hole_stands_for_a_value_where_factors_fill_it(schema):
    text = next(path for path in STUDIES if path.stem == "quickstart").read_text(encoding="utf-8")
    schema.validate(tomllib.loads(text.replace("epochs = 30", 'epochs = "{epochs}"')))
    errors = list(schema.iter_errors(tomllib.loads(text.replace("epochs = 30", 'epochs = "thirty"'))))
    assert [list(error.absolute_path) for error in errors] == [["train", "epochs"]]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_sources_stand_at_the_end_of_every_shipped_study(path):
    tables = re.findall(r"^\[+([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert "source" not in tables or tables[-1].startswith("source")
