"""The agents that answer turns, and their contract."""
