"""The user's own paper: results of several studies as files that LaTeX includes, and a check of its text.

`paper_file` reads paper.toml: the studies, their tables and figures, and the numbers of the text. `files`
makes the files of `activemem paper build` from a store. `text_check` finds what is stale or mistyped in the
text. Nothing else in the package imports this folder, except the two commands.
"""
