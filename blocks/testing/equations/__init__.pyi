from .attention import bucket as bucket
from .common import ACTS as ACTS
from .common import gru_layer as gru_layer
from .common import hardsig as hardsig
from .common import lstm_layer as lstm_layer
from .common import norm as norm
from .common import timing as timing
