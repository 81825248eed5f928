"""Sessions, branches and messages: what was said, where, and in which order."""
