"""What a few seeds can tell.

`estimates` has centres and their spreads, `paired_tests` compares values by seed, `corrections` keeps a
family of tests honest, and `power` says how many pairs an effect needs.
"""
