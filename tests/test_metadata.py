"""The metadata of the package, which an index shows."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_authors_version_and_licence_are_those_of_the_citation():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert [each["name"] for each in PROJECT["authors"]] == re.findall(r"- name: (.+)", citation)
    assert [PROJECT["version"], PROJECT["license"]] == [
        re.search(rf"^{key}: (.+)$", citation, re.M)[1] for key in ("version", "license")
    ]


def test_classifiers_fit_the_python_that_is_required():
    versions = [each.removeprefix("Programming Language :: Python :: ") for each in PROJECT["classifiers"]]
    minors = [int(each.removeprefix("3.")) for each in versions if re.fullmatch(r"3\.\d+", each)]
    assert f">=3.{min(minors)}" == PROJECT["requires-python"]
    assert minors == list(range(min(minors), max(minors) + 1))
