"""A web server whose pages show the current contents of a store.

Requests never change the store. `http_server` answers the allowed requests with the pages of `pages`: a list
of studies, and the report of each, with its progress and its `trials`. `store_reader` reads the store once
for all viewers; `study_now` is a study at that moment. Templates, style and script are in `templates/`.
"""
