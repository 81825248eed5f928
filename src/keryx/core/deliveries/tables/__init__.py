"""The subject's tables: SQL and the mapping of rows."""
