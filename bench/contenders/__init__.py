"""The stores that are measured, a module each, named as the worker is asked for them.

A module is imported only in its own interpreter and has one function, ``make() -> Contender``.
"""
