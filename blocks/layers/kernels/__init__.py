"""A kernel of another program computes what a plain form computes, and is used where it is seen to.

`agreement` tries the one against the other, `choice` says when a kernel is used, and `recurrences` calls
those of flash-linear-attention, the extra `fla`.
"""
