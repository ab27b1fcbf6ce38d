"""A study is compared with a store: what is done, what is left, what it costs, how far it can reach."""
