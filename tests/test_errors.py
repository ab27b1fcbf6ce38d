"""Every exception of the package is in the tree of errors.py, or private to its module."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import activemem
from activemem import ActivememError, errors

OUTSIDE = ("activemem.tests", "activemem.bench", "activemem.docs", "activemem.extras", "activemem.__main__")
EXTRAS = ("activemem.engine.inference.huggingface",)
"""Modules that import packages which the tests do not install."""


def _exceptions() -> list[type[Exception]]:
    """Return the public exception classes of the product, without the control flow of trainings."""
    found: set[type[Exception]] = set()
    for info in pkgutil.walk_packages(activemem.__path__, "activemem."):
        if info.name.startswith(OUTSIDE + EXTRAS):
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, Exception):
                found.add(value)
    own = (error for error in found if error.__module__.split(".")[0] == "activemem")
    return sorted(
        (error for error in own if not error.__name__.startswith("_")), key=lambda each: each.__name__
    )


EXCEPTIONS = _exceptions()


@pytest.mark.parametrize("error", EXCEPTIONS, ids=lambda error: error.__name__)
def test_a_public_exception_is_in_the_tree(error: type[Exception]):
    assert issubclass(error, ActivememError)
    assert issubclass(error, ValueError)


def test_the_docstring_names_every_exception_with_its_module():
    told = re.findall(r"^ +(\w+Error) .* (activemem\.[\w.]+)$", errors.__doc__ or "", re.MULTILINE)
    assert sorted(told) == [
        (error.__name__, error.__module__) for error in EXCEPTIONS if error is not ActivememError
    ]
