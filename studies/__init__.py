"""A study file becomes trials before anything runs.

`study` is one, which `study_files` finds, `study_contents` reads, `study_checks` looks at as a whole, and
`last_run` finds those that ran; `new_study` is the text of a first one; `outline` counts the trials of the
others. `text` is TOML with positions, `schema` the tables and keys of what is trained, `presentation` those
of what is shown, `own_data` files that it brings along, `catalog` everything it can name: tasks, data sets,
metrics, published numbers. `designs` combines levels, `ladder` has sizes in step, `fidelity` the rungs of a
search, `resolve` fills holes with them and makes trials,
`claims` reads statements about results, `planning` compares a study with a store, `rounds` says what follows
from it, `searches` what a search has found.
The studies that come with the package are the TOML files here; `results` holds what some of them found.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
