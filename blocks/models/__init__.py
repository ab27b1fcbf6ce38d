"""A model is a body in its surroundings: embeddings before it, predictions behind it.

`sequence_model` is the model around a recipe and has `build`, `seq2seq_model` the one around a transducer,
`base_model` what both have in common; `adaptive_softmax` is for large vocabularies.
`released_weights` are those that the program of the all-attention paper has saved.
"""
