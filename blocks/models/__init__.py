"""Models: a body with embeddings before it and an output layer after it.

`model` has the models of recipes and `build`. `adaptive_softmax` is for large vocabularies.
"""
