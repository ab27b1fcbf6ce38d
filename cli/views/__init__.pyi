from .status import format_best_points as format_best_points
from .trial_lines import MAX_RUNNING_LINES as MAX_RUNNING_LINES
from .trial_lines import Headline as Headline
from .trial_lines import TrialNameColumns as TrialNameColumns
from .trial_lines import headline_of as headline_of
