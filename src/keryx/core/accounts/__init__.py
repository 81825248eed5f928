"""The bot accounts of platforms."""
