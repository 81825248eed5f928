"""Pure values and decisions."""
