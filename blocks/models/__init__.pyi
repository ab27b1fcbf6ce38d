from .adaptive_softmax import AdaptiveEmbedding as AdaptiveEmbedding
from .adaptive_softmax import AdaptiveSoftmax as AdaptiveSoftmax
from .model import PAD as PAD
from .model import InputError as InputError
from .model import shift_right as shift_right
