"""Other programs as a platform: signed messages come in over HTTP, answers go out as signed callbacks."""
