from .availability import available_datasets as available_datasets
from .files import dataset_folder as dataset_folder
from .files import iter_lines as iter_lines
from .files import keep_files as keep_files
from .files import read_source as read_source
from .treebank_files import read_treebank as read_treebank
