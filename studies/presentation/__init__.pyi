from .changes import read_changes as read_changes
from .kinds import find_kind as find_kind
from .kinds import kinds_of as kinds_of
from .metric_words import caution_sentence as caution_sentence
from .metric_words import describe_metrics as describe_metrics
from .metric_words import difference_sentence as difference_sentence
from .metric_words import with_true_title as with_true_title
