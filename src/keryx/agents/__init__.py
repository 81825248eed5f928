"""Whoever answers: the contract, and those who keep it."""
