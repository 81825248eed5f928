"""Background processes: one small supervisor each, and who starts, finds and watches them."""
