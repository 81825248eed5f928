"""The database: the only SQL, behind ``Database`` and ``Tx``."""
