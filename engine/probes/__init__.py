"""Probes: measurements of trained models from their stored weights.

`study_probes` probes the encoders of a study and compares them; `encoders` opens a model and measures its
memory. `registered_probes` runs the probes of plug-ins, which `conformance` checks. `tuning` chooses the
decoding of translation models. `trained_models` loads the models.
"""
