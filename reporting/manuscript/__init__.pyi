from .files import paper_files as paper_files
from .files import write_paper as write_paper
from .paper_file import read_manuscript as read_manuscript
