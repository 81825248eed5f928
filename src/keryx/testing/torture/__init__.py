"""Torture: real gateways are killed, frozen and cut off under load, and somebody outside keeps the books."""
