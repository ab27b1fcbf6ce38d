"""A web server whose pages show the current contents of a store.

Requests never change the store. `http_server` answers the allowed requests with the pages of `site`.
`store_reader` reads the store once for all viewers; `study_now` is a study at that moment, with its progress.
`sections` are the parts of its page: those of the report, and its `trials` with their learning curves.
Templates are in `templates/`, the style and the script in `static/`.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
