"""Keryx as the memory of other agent frameworks; each module needs its framework, which is an extra."""
