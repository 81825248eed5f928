"""The running system: loops that hand on through the store and never call each other."""
