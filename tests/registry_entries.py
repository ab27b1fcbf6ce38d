"""Entries of registries that last as long as a test."""

from contextlib import ExitStack

_REPLACED = ExitStack()


def replace_entry(registry, name, item):
    """Let a name stand for another item until the test ends."""
    _REPLACED.enter_context(registry.replaced(name, item))


def restore_entries():
    """Let all names stand for what they stood for before."""
    _REPLACED.close()
