"""The inbox and the turns that answer it."""
