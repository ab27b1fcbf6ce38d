"""The versions of `make test-minimum` are the lowest that pyproject.toml allows."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lowest(requirement):
    """Return the lower bound of a dependency; the dependency must have no other bound."""
    (bound,) = requirement.specifier
    assert bound.operator == ">=", f"expected a lower bound of {requirement.name}, got {bound}"
    return Version(bound.version)


def pins():
    """Return the version of each package in constraints-minimum.txt."""
    lines = (ROOT / "constraints-minimum.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_each_dependency_is_pinned_at_its_lower_bound():
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    found = pins()
    assert {each.name: found.get(canonicalize_name(each.name)) for each in wanted} == {
        each.name: lowest(each) for each in wanted
    }
