"""Calls of models through their providers' packages."""
