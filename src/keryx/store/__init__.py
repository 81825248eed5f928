"""The database: ``Database`` and ``Tx``, named statements, migrations and codecs."""
