"""Results for the user's own paper.

One part writes tables, figures and numbers of several studies as files that LaTeX includes. Another part
checks the paper's text against them.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
