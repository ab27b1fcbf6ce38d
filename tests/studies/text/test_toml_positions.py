"""Every path in tomllib's result is located, and the located text parses to its value."""

import datetime
import json
import tomllib

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from activemem.studies.text.toml_positions import locate

WORKED = '''# a comment with [brackets] = and "quotes"
title = "x" # y = 1
[model]
recipe = "4 * ({mixer} >> ff(512))"
"quoted key" . inner = { a = 1, b = [1, 2], "c d" = {} }

[train]
optimizer = { name = "adam", lr = 1e-3 } # tail
many = [ # first
  "a", 'b', # second, with ]
  """c
"d\\"""", \'\'\'e'\'\'\'\',
  [[1], [2, 3]],
]
when = 1979-05-27 07:32:00
quotes = """"two"""
[[table]]
name = "t"
[table.inner]
x = 1
[[table]]
name = "u"
inner.y = [{ z = 1 }, { z = 2 }]
[a.b.c]
d = 1
[a]
e = 2
'''


def paths(value, path=()):
    """Return every path below a parsed value."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


def check(text):
    places = locate(text)
    found = dict(paths(tomllib.loads(text)))
    assert set(places) == set(found)
    for path, value in found.items():
        key, span = places[path].key, places[path].value
        element = key == span and isinstance(path[-1], int)
        header = span[0] < key[0] < key[1] < span[1]
        if not element:
            name = next(part for part in reversed(path) if isinstance(part, str))
            assert tomllib.loads(f"{text[slice(*key)]} = 0") == {name: 0}
        if header:
            assert text[span[0]] == "[" and text[span[1] - 1] == "]"
        elif element or key != span:  # a table that is only implied has no text of its own
            assert tomllib.loads(f"key = {text[slice(*span)]}")["key"] == value


def test_every_path_of_a_worked_text_is_located():
    check(WORKED)


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("model",), "model", "[model]"),
        (("model", "recipe"), "recipe", '"4 * ({mixer} >> ff(512))"'),
        (("model", "quoted key"), '"quoted key"', '"quoted key"'),
        (("model", "quoted key", "inner", "b", 1), "2", "2"),
        (("train", "optimizer", "lr"), "lr", "1e-3"),
        (("train", "when"), "when", "1979-05-27 07:32:00"),
        (("train", "many", 4, 1, 1), "3", "3"),
        (("table", 0), "table", "[[table]]"),
        (("table", 0, "inner"), "inner", "[table.inner]"),
        (("table", 1, "name"), "name", '"u"'),
        (("a", "e"), "e", "2"),
    ],
)
def test_a_key_and_its_value_have_their_own_spans(path, key, value):
    place = locate(WORKED)[path]
    assert (WORKED[slice(*place.key)], WORKED[slice(*place.value)]) == (key, value)


BARE = st.text("abcXYZ019_-", min_size=1, max_size=4)
ANY = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=6)
SPACE = st.sampled_from(["", " ", "\t "])
GAP = st.sampled_from(["", " ", "\n", " # note, with ] and }\n", "\n\n\t"])


def basic(text):
    return json.dumps(text, ensure_ascii=False)


def multiline(text):
    return '"""\n' + text.replace("\\", "\\\\").replace('"""', '""\\"') + '\\""""'


STRINGS = st.one_of(
    ANY.map(basic),
    ANY.filter(lambda text: "'" not in text).map(lambda text: f"'{text}'"),
    ANY.map(multiline),
    ANY.filter(lambda text: "'" not in text).map(lambda text: f"'''{text}'\n''''"),
)
SCALARS = st.one_of(
    STRINGS,
    st.integers(-1000, 1000).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(["true", "false", "0x1F", "1_000", "+inf", "07:32:00", "1979-05-27 07:32:00Z"]),
    st.dates(min_value=datetime.date(1000, 1, 1)).map(str),
)
KEYS = st.one_of(BARE, ANY.map(basic), BARE.map(lambda text: f"'{text}'"))


@st.composite
def arrays(draw, inner):
    parts = draw(st.lists(inner, max_size=3))
    text = "[" + draw(GAP)
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        text += part + draw(GAP) + ("" if last and draw(st.booleans()) else ",") + draw(GAP)
    return text + "]"


def distinct(keys):
    """Return distinct keys, none of which is a prefix of another."""
    read = {}
    for key in keys:
        read.setdefault(next(iter(tomllib.loads(f"{key} = 0"))), key)
    return list(read.values())


@st.composite
def inline_tables(draw, inner):
    keys = distinct(draw(st.lists(KEYS, max_size=3)))
    pairs = []
    for key in keys:
        dotted = draw(st.booleans())
        full = f"{key}{draw(SPACE)}.{draw(SPACE)}{draw(KEYS)}" if dotted else key
        pairs.append(f"{full}{draw(SPACE)}={draw(SPACE)}{draw(inner)}")
    return "{ " + ", ".join(pairs) + draw(SPACE) + "}"


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=6)


@st.composite
def bodies(draw):
    keys = distinct(draw(st.lists(KEYS, max_size=3)))
    lines = [f"{draw(SPACE)}{key}{draw(SPACE)}={draw(SPACE)}{draw(VALUES)}{draw(SPACE)}" for key in keys]
    return "".join(line + draw(st.sampled_from(["\n", " # tail = [1]\n", "\n\n"])) for line in lines)


@st.composite
def documents(draw):
    text = draw(bodies())
    used = tomllib.loads(text)
    names = [
        key
        for key in distinct(draw(st.lists(KEYS, max_size=4)))
        if tomllib.loads(f"{key}=0").keys().isdisjoint(used)
    ]
    for name in names:
        kind = draw(st.sampled_from(["table", "below", "array"]))
        if kind == "table":
            text += f"{draw(SPACE)}[{draw(SPACE)}{name}{draw(SPACE)}]\n" + draw(bodies())
        elif kind == "below":
            text += f"[{name} . {draw(KEYS)}]\n" + draw(bodies())
        else:
            for _ in range(draw(st.integers(1, 3))):
                text += f"[[{name}]] # one\n" + draw(bodies())
                if draw(st.booleans()):
                    text += f'[{name}."of its own"]\n' + draw(bodies())
    return text


@pytest.mark.heavy
@settings(max_examples=200, deadline=None)
@given(documents())
def test_every_path_of_any_text_is_located(text):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        reject()  # two of the random keys met
    check(text)
