"""Registry entries during a test."""

from contextlib import ExitStack

_REPLACED = ExitStack()


def replace_entry(registry, name, item):
    """Replace the item of a name until the test ends."""
    _REPLACED.enter_context(registry.replaced(name, item))


def restore_entries():
    """Restore all replaced names."""
    _REPLACED.close()
