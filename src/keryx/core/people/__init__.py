"""People, the accounts by which platforms know them, and what they may do."""
