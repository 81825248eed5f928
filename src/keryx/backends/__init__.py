"""The backends that run background processes, and their contract."""
