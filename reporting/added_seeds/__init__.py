"""Seeds are added where they decide the most for an hour of training.

`next_seeds` chooses among the `candidate`s: what would decide claims (`of_claims`), and what would decide the
differences of tables that say which of them matter (`of_tables`).
"""
