"""A web server whose pages show the current contents of a store.

Requests never change the store. `http_server` answers the allowed requests. `site` makes the responses:
pages, figures, and changed parts of pages. `store_reader` reads the store once for all viewers. `sections`
are the parts of a study's page: `progress`, `learning` curves with the trials, a search's `search_points`,
and the sections of the report. Templates are in `templates/`, the style and the script in `static/`.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
