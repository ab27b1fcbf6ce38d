"""TPE: a point is proposed that is likely among the good points, and unlikely among all others.

`sampler` proposes the points, `parzen` estimates how likely they are, with the kernels of numbers in
`normals`, and `forms` knows which dimensions points take.
"""
