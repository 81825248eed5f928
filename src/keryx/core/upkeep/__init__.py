"""Recovery, purges, invariants, and the processes that work on the store."""
