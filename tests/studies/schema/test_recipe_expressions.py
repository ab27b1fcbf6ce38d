"""Recipes given as Python expressions equal their texts."""

import pytest
from pydantic import ValidationError

from activemem import conv, ff, load_study, sa
from activemem.studies.schema.settings import ModelSettings

from ...study_texts import study_text

SEARCH = study_text(
    study={"name": "searched", "title": "Which mixer"},
    task={"name": "copy"},
    train={"batch_size": 2, "epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "random", "trials": 2, "metric": "loss", "direction": "min"},
    space={"mixer": "choice(sa, conv(k=3) + sa)"},
)


def test_settings_take_an_expression_where_they_take_its_text():
    settings = ModelSettings(recipe=2 * (conv(k=3) + sa >> ff(8)), d_model=8)
    assert settings.recipe == "2 * (conv(k=3) + sa >> ff(8))"
    assert settings == ModelSettings(recipe="2*(conv(3)+sa>>ff(8))", d_model=8)
    with pytest.raises(ValidationError, match="conv needs k"):
        ModelSettings(recipe=conv, d_model=8)


def test_a_search_point_takes_an_expression_where_it_takes_its_text():
    study = load_study(SEARCH)
    trial = study.search.trial_of({"mixer": conv(k=3) + sa}, seed=1)
    assert trial == study.search.trial_of({"mixer": "conv(k=3) + sa"}, seed=1)
    assert trial.levels == {"mixer": "conv(k=3) + sa", "seed": 1}
