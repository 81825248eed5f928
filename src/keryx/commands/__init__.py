"""The commands of all surfaces: the table, the parser and the help."""
