from .neural_gpu import CGRUStack as CGRUStack
from .neural_gpu import ImageCGRU as ImageCGRU
from .seq2seq import CrossAttention as CrossAttention
from .seq2seq import Seq2Seq as Seq2Seq
