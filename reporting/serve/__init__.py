"""A web server whose pages show the current contents of a store.

Requests never change the store. `http_server` answers the allowed requests with the pages of `site`.
`store_reader` reads the store once for all viewers. `sections` are the parts of a study's page: those of the
report, its `progress`, and its `trials` with their learning curves. Templates are in `templates/`, the style
and the script in `static/`.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
