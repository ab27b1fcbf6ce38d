"""Files of corpora: downloaded, located and verified by checksums.

`download` fetches them, `availability` lists those on this machine, and `files` reads published files.
`treebank_files` reads the files of treebanks, and `own_files` keeps and reads the user's own files.
"""
