"""A transducer maps a source to a target of another length: whole models, and what they are made of."""
