"""Tools that read the web."""
