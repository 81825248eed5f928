"""Torture: kill, freeze and cut off real gateways under load, and check their output from outside."""
