"""What the loops of a gateway share."""
