"""Tools that act on Keryx itself."""
