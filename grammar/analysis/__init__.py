"""What a model costs, keeps and reaches, computed from its tree before anything is built."""
