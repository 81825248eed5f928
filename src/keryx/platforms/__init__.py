"""Where people are: the contract every platform's adapter keeps, and the adapters."""
