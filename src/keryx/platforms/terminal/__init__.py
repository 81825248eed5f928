"""The terminal as a platform: its adapter, its screen, and the display of a conversation."""
