"""Files of corpora: downloaded, located and verified by checksums.

`download` fetches them, `availability` lists those on this machine, and `files` reads published files, and
keeps the user's own. `treebank_files` reads the files of treebanks.
"""
