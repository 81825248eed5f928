"""Read models: what people and programs see, from a read-only transaction."""
