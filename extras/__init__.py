"""Plug-ins that come with the package: each is one file, and uses only names that are promised to users.

`--plugin NAME`, `plugins = ["NAME"]` in `[study]` or `load_plugin("NAME")` loads the file NAME.py. No other
folder knows these files.
"""

raise ImportError("load a plug-in of this folder by its name: activemem.load_plugin(NAME)")
