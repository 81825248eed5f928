"""State changes, one per file."""
