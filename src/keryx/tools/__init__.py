"""The tools that an agent may call, and their contract."""
