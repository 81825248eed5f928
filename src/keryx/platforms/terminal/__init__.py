"""The terminal as a platform: its adapter, its screen, and what a conversation looks like on it."""
