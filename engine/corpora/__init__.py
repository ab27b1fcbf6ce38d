"""Files of corpora: fetched, found, and compared with their checksums.

`download` fetches them, `availability` lists which are on this machine, and `files` reads them as published.
`treebank_files` reads the files of treebanks, and `own_files` keeps and reads the user's own files.
"""
