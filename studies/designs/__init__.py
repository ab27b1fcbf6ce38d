"""Experimental designs: rows of level numbers, made from the numbers of levels alone.

`fractions` has the regular fractions of two-level factors, `hadamard` Plackett and Burman's designs,
`aliases` what either cannot tell apart; `samples` draws from grids of any size.
"""
