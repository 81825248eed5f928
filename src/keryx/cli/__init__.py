"""The command line: parses and prints; everything else is below."""
