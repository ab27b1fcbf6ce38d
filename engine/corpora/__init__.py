"""Files of corpora: downloaded, located and verified by checksums.

`download` fetches files, and `availability` lists the files on this machine. `files` reads published files
and keeps copies of the user's own files. `treebank_files` reads the files of treebanks.
"""
