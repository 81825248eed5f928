"""Read models over a read-only transaction."""
