"""The tests: one behaviour each, on both databases where the store is involved."""
