from .adaptive_softmax import AdaptiveEmbedding as AdaptiveEmbedding
from .adaptive_softmax import AdaptiveSoftmax as AdaptiveSoftmax
from .seq2seq_model import PAD as PAD
from .seq2seq_model import shift_right as shift_right
