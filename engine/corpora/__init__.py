"""Files of corpora: fetched, found, and compared with their checksums.

`download` fetches them, `availability` says which are on this machine, `files` reads them as they were
published, `treebank_files` those of treebanks. `own_files` keeps and reads files of the user's own.
"""
