"""A model is a body in its surroundings: embeddings before it, predictions behind it."""
