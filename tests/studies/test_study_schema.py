"""The JSON Schema of study files accepts all included studies, and rejects invalid ones."""

import json
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest

import activemem
from activemem import StudyError, load_study
from activemem.studies.json_schema import study_schema

from ..study_texts import replaced

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


MINE = """
study = { name = "mine", title = "Which mixer?", max_seeds = 30 }
task = { name = "reverse" }
[model]
recipe = "2 * ({mixer} >> ff(64))"
d_model = 32
[train]
optimizer = { name = "adam", lr = 2e-3 }
epochs = 3
steps_per_epoch = 20
curriculum = { start = 3 }
[factors]
mixer = ["sa(heads=2, head_width=16)", "conv(k=5)"]
seed = [1, 2]
[[table]]
name = "lengths"
rows = "mixer"
value = "max_length"
[[claim]]
name = "attention is better"
holds = "max_length[mixer=sa] > max_length[mixer=conv]"
"""
WRONG = [
    ('name = "adam", lr = 2e-3', 'name = "adam", lr = "quick"'),
    ('"reverse"', '"sortt"'),
    ('"adam"', '"adamm"'),
    ("d_model = 32", 'd_model = 32\nposition = "somewhere"'),
    ("d_model = 32", 'd_model = 32\nnorm_kind = "l2"'),
    ('"adam", lr', '"adam", rate'),
    ('{ name = "reverse" }', '{ name = "mqar", words = 3 }'),
    ('{ name = "reverse" }', '{ name = "mqar", vocab = "many" }'),
    ('{ name = "reverse" }', '{ name = "mad", problem = "x" }'),
    ('{ name = "reverse" }', '{ name = "word_problem", group = "Q8x" }'),
    ('{ name = "reverse" }', '{ name = "reverse", vocab = 1 }'),
    ('{ name = "reverse" }', '{ name = "reverse", dev_examples = 0 }'),
    ('{ name = "reverse" }', '{ name = "reverse", test_lengths = "41" }'),
    ('{ name = "reverse" }', '{ name = "reverse", test_lengths = { frist = 1, last = 5 } }'),
    ('{ name = "reverse" }', '{ name = "language_model", corpus = 3 }'),
    ('{ name = "reverse" }', '{ name = "language_model", tokens = "letters", corpus = "enwik8" }'),
    ('{ name = "reverse" }', "{ vocab = 20 }"),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "cosines", warmup = 3 }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "cosine", warm = 3 }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "cosine", warmup = -3 }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "cosine", floor = 2.0 }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "constant", floor = 0.5 }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "milestones" }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "linear", milestones = [3] }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = { name = "inverse_sqrt" }\n'),
    ("epochs = 3\n", 'epochs = 3\nschedule = "cosine"\n'),
    ("lr = 2e-3", "lr = 0"),
    ("lr = 2e-3", "lr = 2e-3, momentum = 0.9"),
    ("lr = 2e-3", "lr = 2e-3, betas = [0.9]"),
    ("lr = 2e-3", "lr = 2e-3, eps = 0"),
    (", lr = 2e-3", ""),
    ("seed = [1, 2]", "seed = []"),
    ("seed = [1, 2]", "seed = [-1]"),
    ("seed = [1, 2]", "seed = [1.5]"),
    ("seed = [1, 2]", "seed = 3"),
    ('mixer = ["sa(heads=2, head_width=16)", "conv(k=5)"]', "mixer = []"),
    ("seed = [1, 2]", 'seed = [1, 2]\n"2d" = [1]'),
    ("max_seeds = 30", "max_seeds = 1"),
    ("max_seeds = 30", 'paper = "nobody"'),
    ("max_seeds = 30", 'design = "gird"'),
    ("max_seeds = 30", 'order = "random"'),
    ('name = "mine"', 'name = "a b"'),
    ("epochs = 3\n", 'epochs = 3\nprecision = "fp16"\n'),
    ("epochs = 3\n", 'epochs = 3\nloss_terms = ["x"]\n'),
    ("epochs = 3\n", 'epochs = 3\nearly_stopping = { metric = "loss", patience = 0 }\n'),
    ("epochs = 3\n", 'epochs = 3\nkeep = "first"\n'),
    ("epochs = 3\n", 'epochs = 3\ngroups = [{ match = "", lr_scale = 2 }]\n'),
    ("steps_per_epoch = 20", "steps_per_epoch = true"),
    ('rows = "mixer"', "rows = 3"),
    ('value = "max_length"', 'value = "max_length"\nkind = "cels"'),
    ('value = "max_length"', 'value = "max_length"\ndigits = -4'),
    ("holds = ", "hold = "),
    ("[[claim]]", "[claim]"),
    ("[factors]", "[recipes]\ncore = 3\n[factors]"),
    ("start = 3", "start = 0"),
    ("d_model = 32", "d_model = 0"),
    ("d_model = 32", "d_model = 32\ndropout = 1.5"),
    ("seed = [1, 2]", 'seed = [1, 2]\n[search]\nsampler = "tpee"\ntrials = 4'),
    (
        "seed = [1, 2]",
        'seed = [1, 2]\n[search]\nsampler = { name = "tpe", x = 2 }\ntrials = 4\nmetric = "loss"',
    ),
    ("seed = [1, 2]", 'seed = [1, 2]\n[search]\nscheduler = "ashaa"\ntrials = 4\nmetric = "loss"'),
    ("seed = [1, 2]", "seed = [1, 2]\n[decode]\nbeam = [0]"),
    ('"reverse"', '"translation", corpus = "wmt99"'),
    ('name = "attention is better"', 'title = "x"'),
]


@pytest.mark.parametrize(("before", "after"), WRONG, ids=[after for _, after in WRONG])
def test_what_a_plan_refuses_is_refused_in_an_editor_too(schema, before, after):
    schema.validate(tomllib.loads(MINE))
    text = replaced(MINE, (before, after))
    with pytest.raises(StudyError):
        load_study(text)
    assert not schema.is_valid(tomllib.loads(text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"adam"', '"theirs", speed = 3'),
        ('"reverse"', '"theirs", depth = 3'),
        ("d_model = 32", 'd_model = 32\nposition = "theirs"'),
        ("epochs = 3", 'epochs = 3\nschedule = { name = "theirs", speed = 3 }'),
        ('value = "max_length"', 'value = "max_length"\nkind = "theirs"'),
        ("max_seeds = 30", 'max_seeds = 30, design = "theirs"'),
    ],
)
def test_a_study_with_plug_ins_may_use_their_names_and_keys(schema, before, after):
    text = replaced(MINE, (before, after))
    assert not schema.is_valid(tomllib.loads(text))
    for plugins in ('"theirs.py"', '["theirs.py"]'):
        schema.validate(tomllib.loads(replaced(text, ("max_seeds", f"plugins = {plugins}, max_seeds"))))


def test_a_hole_stands_for_a_part_or_its_name(schema):
    for before, after in (
        ('{ name = "adam", lr = 2e-3 }', '{ name = "{rule}", lr = "{lr}" }'),
        ("epochs = 3", 'epochs = 3\nschedule = "{schedule}"'),
        ('{ name = "reverse" }', '{ name = "{task}" }'),
        ("d_model = 32", 'd_model = 32\nposition = "{position}"'),
    ):
        schema.validate(tomllib.loads(replaced(MINE, (before, after))))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_sources_stand_at_the_end_of_every_shipped_study(path):
    tables = re.findall(r"^\[+([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert "source" not in tables or tables[-1].startswith("source")
