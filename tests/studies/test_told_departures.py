"""Deviations of a study from its paper have a source in its sheet."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache

import pytest

from activemem import load_study
from activemem.studies import find_study_file
from activemem.studies.schema.source_sheet import SourcedSetting, SourceSheet

from ..quick_cases import one_in

_NAMES = [path.stem for path in find_study_file("algorithmic").parent.glob("*.toml")]
_SMALL = {name: name.removesuffix("-small") for name in _NAMES if name.removesuffix("-small") in _NAMES}
_TEXT = {name.removesuffix("-program"): name for name in _NAMES if name.endswith("-program")}
_IN_SMALL = {name: _TEXT[text] for name, text in _SMALL.items() if text in _TEXT and name != text}
PAIRS = sorted(
    {
        *((name, text) for name, text in _SMALL.items() if name != text),
        *((name, program) for name, program in _TEXT.items()),
        *_IN_SMALL.items(),
        ("algorithmic-small-rates", "algorithmic-program"),
        ("algorithmic-vocabulary-small", "algorithmic-program"),
        ("algorithmic-curriculum-small", "algorithmic-program"),
        ("language-modelling-dropout", "language-modelling-program"),
        ("language-modelling-dropout-small", "language-modelling-program"),
        ("feedforward-attention-longest", "feedforward-attention-program"),
        ("memory-degradation-sizes", "memory-degradation"),
        ("memory-degradation-translation-sizes", "memory-degradation-translation"),
    }
)
_TOLD_WITH = {  # deviations with which maps begin are told of once, with how all maps begin
    f"model.{part}_std": "model.init" for part in ("feedforward", "attention", "attention_output")
}


@pytest.mark.parametrize(("name", "like"), one_in(2, PAIRS))
def test_a_default_that_is_not_what_the_paper_or_its_program_has_is_reported(name, like):
    found = {setting.name: setting for setting in _sheet(name).settings}
    missing = [
        setting
        for setting, value in _settings_of_the_paper(like)
        if setting in found
        and found[_TOLD_WITH.get(setting, setting)].is_default
        and found[setting].value != value
        and not _is_of_another_rule(setting, found, like)
    ]
    assert not missing


@cache
def _sheet(name: str) -> SourceSheet:
    return load_study(name).source_sheet


def _settings_of_the_paper(name: str) -> Iterator[tuple[str, object]]:
    """Yield the settings of a study with the paper or its program as source; holes have no value."""
    for setting in _sheet(name).settings:
        if not setting.is_default and setting.source is not None and setting.source.origin != "ours":
            yield setting.name, setting.value
    text = tomllib.loads(find_study_file(name).read_text())
    for table in ("model", "task", "train"):
        for key, value in _leaves(table, text[table]):
            if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
                yield key, value


def _leaves(name: str, value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from _leaves(f"{name}.{key}", inner)


def _is_of_another_rule(setting: str, found: dict[str, SourcedSetting], like: str) -> bool:
    """Return whether a setting belongs to another optimiser or schedule."""
    name = f"{setting.rpartition('.')[0]}.name"
    theirs = {each.name: each.value for each in _sheet(like).settings}
    return name.startswith("train.") and name in found and found[name].value != theirs.get(name)


@pytest.mark.parametrize("name", [name for name in _NAMES if name.startswith("language-modelling")])
def test_a_loss_that_is_printed_per_token_is_reported_per_position(name):
    tables = [
        each for each in tomllib.loads(find_study_file(name).read_text())["table"] if "published" in each
    ]
    sources = [claim.spec.source or "" for claim in load_study(name).claims]
    told = [
        *(table["caption"] for table in tables),
        *(text for text in sources if re.search(r"\b1\.\d{4}\b", text)),
    ]
    assert all("nats a position" in text for text in told)
    assert bool(told) is ("dropout" not in name)
