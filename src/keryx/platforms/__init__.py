"""Platforms: the contract of every adapter, and Keryx's own adapters."""
