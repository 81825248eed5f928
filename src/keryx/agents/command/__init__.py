"""The command agent: a program of the owner's, run once for each turn."""
