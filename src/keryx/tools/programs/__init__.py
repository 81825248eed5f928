"""Programs of our own for work that may never end: each is a process that can be ended, and needs only Python."""
