"""Probes: measurements of trained models from the weights that their study kept.

`study_probes` probes the encoders of a study and compares those that can be compared; `encoders` opens a
model and measures its memory. `registered_probes` runs the probes of plug-ins, which `conformance` checks.
`tuning` chooses how translating models search for outputs. `trained_models` loads the models; `coordinates`
trains some of several widths for a few steps.
"""
