"""Keryx's own programs for work that may never end: each runs as a process that can be ended, and needs only Python."""
