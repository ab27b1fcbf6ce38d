"""`sampler list`, `optimizer list`, `norm list`: every name, under the key that names it, with its owner."""

import json

import pytest

from activemem.grammar.norms import NORMS
from activemem.grammar.positions import POSITIONS
from activemem.studies.catalog.optimisers import OPTIMIZERS
from activemem.studies.catalog.samplers import SAMPLERS, SCHEDULERS
from activemem.studies.catalog.schedules import SCHEDULES


@pytest.mark.parametrize(
    ("group", "registries"),
    [
        ("sampler", {"[search] sampler": SAMPLERS, "[search] scheduler": SCHEDULERS}),
        ("norm", {"[model] norm_kind": NORMS, "[model] position": POSITIONS}),
        ("optimizer", {"[train] optimizer": OPTIMIZERS, "[train] schedule": SCHEDULES}),
    ],
)
def test_every_name_is_listed_with_its_owner(group, registries, run):
    result = run(group, "list", "--json")
    assert result.exit_code == 0
    listed = json.loads(result.stdout)[f"{group}s"]
    assert [(each["key"], each["name"], each["owner"]) for each in listed] == [
        (key, name, "activemem") for key, registry in registries.items() for name in registry
    ]
    lines = run(group, "list").stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == list(registries)
