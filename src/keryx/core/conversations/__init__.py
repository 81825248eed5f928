"""Sessions, branches and messages."""
