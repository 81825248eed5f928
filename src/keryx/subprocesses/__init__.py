"""Programs that Keryx starts and waits for."""
