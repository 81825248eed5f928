"""Tools that run commands and background processes."""
