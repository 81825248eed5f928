"""The outbox: what is said, where it goes, and what became of it."""
