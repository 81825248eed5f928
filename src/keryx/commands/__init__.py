"""The commands, the same on every surface: one table, the parser, and the help."""
